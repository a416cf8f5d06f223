//! Pixels for the networks, made as OpenCV makes them: the networks were trained on its arithmetic, and what
//! they read is compared with a reader that uses it. All in integers and plain additions, in a fixed order.

use image::RgbImage;

/// Where a place of the target lies in the source, as OpenCV's tables have it: in parts of 2048.
const PARTS: f64 = 2048.0;
/// OpenCV's cubic kernel …
const SHARPNESS: f64 = -0.75;
/// … and how finely it divides a pixel.
const STEPS: f64 = 32.0;

/// Four corners: top left, top right, bottom right, bottom left as the text runs.
pub(super) type Quad = [[f64; 2]; 4];

/// For each place along a side: the two source places and the weight of the second.
fn taps(from: u32, to: u32) -> Vec<(usize, usize, i64)> {
    let scale = f64::from(from) / f64::from(to);
    let last = from as usize - 1;
    let tap = |at: u32| {
        let place = (f64::from(at) + 0.5) * scale - 0.5;
        let first = place.floor();
        if first < 0.0 {
            return (0, 0, 0);
        }
        let first_place = (first as usize).min(last);
        let share = if first_place == last { 0.0 } else { place - first };
        (first_place, (first_place + 1).min(last), (share * PARTS).round_ties_even() as i64)
    };
    (0..to).map(tap).collect()
}

/// A picture at another size, bilinear.
pub(super) fn resized(source: &RgbImage, width: u32, height: u32) -> RgbImage {
    let (width, height) = (width.max(1), height.max(1));
    if source.dimensions() == (width, height) {
        return source.clone();
    }
    let (from_width, from_height) = source.dimensions();
    if (from_width, from_height) == (2 * width, 2 * height) {
        return halved(source);
    }
    let (columns, rows) = (taps(from_width, width), taps(from_height, height));
    let (stride, pixels) = (from_width as usize * 3, source.as_raw());
    let mut target = Vec::with_capacity(width as usize * height as usize * 3);
    let across = |row: usize| -> Vec<i64> {
        let row = &pixels[row * stride..(row + 1) * stride];
        let mut line = Vec::with_capacity(width as usize * 3);
        for &(first, second, share) in &columns {
            for channel in 0..3 {
                let (a, b) = (row[first * 3 + channel], row[second * 3 + channel]);
                line.push(i64::from(a) * (2048 - share) + i64::from(b) * share);
            }
        }
        line
    };
    let mut kept: [Option<(usize, Vec<i64>)>; 2] = [None, None];
    for &(first, second, share) in &rows {
        let take = |row: usize| match kept.iter().flatten().find(|(at, _)| *at == row) {
            Some((_, line)) => line.clone(),
            None => across(row),
        };
        let (above, below) = (take(first), take(second));
        for (a, b) in above.iter().zip(&below) {
            // The shifts in this order are OpenCV's rounding.
            let a = ((2048 - share) * (a >> 4)) >> 16;
            let b = (share * (b >> 4)) >> 16;
            target.push(((a + b + 2) >> 2).clamp(0, 255) as u8);
        }
        kept = [Some((first, above)), Some((second, below))];
    }
    RgbImage::from_raw(width, height, target).unwrap_or_else(|| RgbImage::new(width, height))
}

/// Half the size: OpenCV takes means then.
fn halved(source: &RgbImage) -> RgbImage {
    RgbImage::from_fn(source.width() / 2, source.height() / 2, |x, y| {
        let of = |dx, dy| source.get_pixel(2 * x + dx, 2 * y + dy).0;
        let [a, b, c, d] = [of(0, 0), of(1, 0), of(0, 1), of(1, 1)];
        let mean = |i: usize| [a, b, c, d].iter().map(|p| u16::from(p[i])).sum::<u16>();
        image::Rgb([0, 1, 2].map(|i| ((mean(i) + 2) >> 2) as u8))
    })
}

/// The picture with black rows above and below.
pub(super) fn padded(source: &RgbImage, rows: u32) -> RgbImage {
    let mut target = RgbImage::new(source.width(), source.height() + 2 * rows);
    image::imageops::replace(&mut target, source, 0, i64::from(rows));
    target
}

/// What lies in a quadrilateral, made upright; lettering that runs upwards is laid down.
pub(super) fn straightened(source: &RgbImage, quad: &Quad) -> RgbImage {
    let [a, b, c, d] = quad;
    let width = (distance(a, b).max(distance(c, d)) as u32).max(1);
    let height = (distance(a, d).max(distance(b, c)) as u32).max(1);
    let place = from_unit_square(quad);
    let flat = RgbImage::from_fn(width, height, |x, y| {
        let (x, y) = place(f64::from(x) / f64::from(width), f64::from(y) / f64::from(height));
        cubic(source, x, y)
    });
    if f64::from(height) / f64::from(width) >= 1.5 {
        image::imageops::rotate270(&flat)
    } else {
        flat
    }
}

pub(super) fn distance([x1, y1]: &[f64; 2], [x2, y2]: &[f64; 2]) -> f64 {
    ((x1 - x2) * (x1 - x2) + (y1 - y2) * (y1 - y2)).sqrt()
}

/// The projective map of the unit square onto a quadrilateral.
fn from_unit_square(quad: &Quad) -> impl Fn(f64, f64) -> (f64, f64) {
    let [[x0, y0], [x1, y1], [x2, y2], [x3, y3]] = *quad;
    let (dx1, dy1, dx2, dy2) = (x1 - x2, y1 - y2, x3 - x2, y3 - y2);
    let (sx, sy) = (x0 - x1 + x2 - x3, y0 - y1 + y2 - y3);
    let whole = dx1 * dy2 - dx2 * dy1;
    let (g, h) = match whole == 0.0 {
        true => (0.0, 0.0),
        false => ((sx * dy2 - dx2 * sy) / whole, (dx1 * sy - sx * dy1) / whole),
    };
    move |u, v| {
        let depth = g * u + h * v + 1.0;
        let x = (x1 - x0 + g * x1) * u + (x3 - x0 + h * x3) * v + x0;
        let y = (y1 - y0 + g * y1) * u + (y3 - y0 + h * y3) * v + y0;
        (x / depth, y / depth)
    }
}

fn cubic(source: &RgbImage, x: f64, y: f64) -> image::Rgb<u8> {
    let (x, y) = ((x * STEPS).round_ties_even() / STEPS, (y * STEPS).round_ties_even() / STEPS);
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (weights(x - left), weights(y - top));
    let inside = |at: f64, side: u32| at.clamp(0.0, f64::from(side - 1)) as u32;
    if (x, y) == (left, top) {
        return *source.get_pixel(inside(x, source.width()), inside(y, source.height()));
    }
    let mut sums = [0.0; 3];
    for (row, down) in down.iter().enumerate() {
        for (column, across) in across.iter().enumerate() {
            let pixel = source.get_pixel(
                inside(left + column as f64 - 1.0, source.width()),
                inside(top + row as f64 - 1.0, source.height()),
            );
            for (sum, value) in sums.iter_mut().zip(pixel.0) {
                *sum += across * down * f64::from(value);
            }
        }
    }
    image::Rgb(sums.map(|sum| sum.round().clamp(0.0, 255.0) as u8))
}

fn weights(t: f64) -> [f64; 4] {
    let a = SHARPNESS;
    let outer = |t: f64| ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a;
    let inner = |t: f64| ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
    let [first, second, third] = [outer(t + 1.0), inner(t), inner(1.0 - t)];
    [first, second, third, 1.0 - first - second - third]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripes() -> RgbImage {
        RgbImage::from_fn(13, 7, |x, y| image::Rgb([(x * 19) as u8, (y * 31) as u8, (x * y) as u8]))
    }

    #[test]
    fn sizes_are_made_as_opencv_makes_them() {
        // cv2.resize (5.0.0) of the same picture to 20×11 and 5×3, at some places.
        let large = resized(&stripes(), 20, 11);
        let small = resized(&stripes(), 5, 3);
        assert_eq!([large.get_pixel(3, 2).0, large.get_pixel(17, 9).0], LARGE);
        assert_eq!([small.get_pixel(1, 1).0, small.get_pixel(4, 2).0], SMALL);
        assert_eq!(halved(&resized(&stripes(), 12, 6)).dimensions(), (6, 3));
    }
    const LARGE: [[u8; 3]; 2] = [[34, 34, 2], [206, 172, 60]];
    const SMALL: [[u8; 3]; 2] = [[65, 93, 10], [213, 165, 60]];

    #[test]
    fn an_upright_box_is_cut_and_a_tall_one_laid_down() {
        let source = stripes();
        let cut = straightened(&source, &[[2.0, 1.0], [9.0, 1.0], [9.0, 5.0], [2.0, 5.0]]);
        assert_eq!(cut.dimensions(), (7, 4));
        assert_eq!(cut.get_pixel(6, 3), source.get_pixel(8, 4));
        let tall = straightened(&source, &[[2.0, 0.0], [5.0, 0.0], [5.0, 6.0], [2.0, 6.0]]);
        assert_eq!(tall.dimensions(), (6, 3));
        // Counter-clockwise: what was at the top right is at the top left.
        assert_eq!(tall.get_pixel(0, 0), source.get_pixel(4, 0));
    }

    #[test]
    fn a_slanted_box_is_made_upright() {
        let source = RgbImage::from_fn(60, 60, |x, y| image::Rgb([(2 * (x + y)) as u8; 3]));
        let cut = straightened(&source, &[[10.0, 30.0], [30.0, 10.0], [40.0, 20.0], [20.0, 40.0]]);
        assert_eq!(cut.dimensions(), (28, 14));
        // Along its first side the sum of the coordinates stays the same.
        let row: Vec<u8> = (0..28).map(|x| cut.get_pixel(x, 7).0[0]).collect();
        assert!(row.iter().all(|&value| value.abs_diff(row[0]) <= 2), "{row:?}");
    }
}
