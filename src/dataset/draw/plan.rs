//! The plan of a case: which objects stand where, which of them are meant, and what is asked.

use deeplook_tools::{Picture, PixelBox, Size};

use super::background::{Backdrop, Setting, paint};
use super::canvas::{Finish, Object, Shadow, Sprite};
use super::colour::{Colour, Material, Rgb, contrast};
use super::letters::WORDS;
use super::random::Random;
use super::thing::{Look, Thing, Zone};
use super::{Edit, Kind, editors};

/// What an object is in the scene for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The instruction means it.
    Target,
    /// The instruction asks to add it.
    Wanted,
    /// It is there to be left alone.
    Bystander,
    /// Nobody asked for it; only a bad editor shows it.
    Spare,
}

/// An object with its role.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) object: Object,
    pub(super) role: Role,
    pub(super) shown: bool,
    pub(super) bounds: PixelBox,
    /// The background's colour underneath.
    pub(super) ground: Rgb,
}

/// All that is known of a case before anything is drawn.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) edit: Edit,
    pub(super) setting: Setting,
    pub(super) backdrop: Backdrop,
    pub(super) finish: Finish,
    pub(super) slots: Vec<Slot>,
    /// The slots' objects, drawn.
    sprites: Vec<Sprite>,
}

impl Plan {
    /// The plan for a case; `None` where no layout was found, which does not happen in practice.
    pub(super) fn new(seed: u64, index: u64) -> Option<Self> {
        // Every setting comes once in a round, in an order of its own.
        let round = Setting::ALL.len() as u64;
        let mut settings = Setting::ALL;
        Random::new(seed, index / round, 1).shuffle(&mut settings);
        let setting = settings[(index % round) as usize];
        let mut random = Random::new(seed, index, 2);
        let size = picture_size(&mut random);
        Self::set(setting, size, index, random)
    }

    /// A plan for quite another scene of the same size.
    pub(super) fn elsewhere(&self, mut random: Random) -> Option<Self> {
        let here = self.setting.is_landscape();
        let setting = random.pick_where(&Setting::ALL, |there| there.is_landscape() != here)?;
        // A removal: several sorts of objects, each once.
        Self::set(setting, self.backdrop.canvas.size, 4, random)
    }

    /// A plan in a given setting; `index` decides on the type and whether there are several targets.
    pub(super) fn set(
        setting: Setting,
        size: Size,
        index: u64,
        mut random: Random,
    ) -> Option<Self> {
        let kind = Kind::ALL[(index % 7) as usize];
        let several = kind == Kind::ChangeCount || index % 5 == 3;
        let backdrop = paint(setting, size, &mut random);
        let finish = Finish {
            vignette: random.range(0.10, 0.32),
            grain: random.range(0.6, 1.4),
            seed: random.seed(),
        };
        let (edit, slots, sprites) = (Edit::Remove, Vec::new(), Vec::new());
        let mut plan = Self { kind, edit, setting, backdrop, finish, slots, sprites };
        for _ in 0..80 {
            let Some((edit, slots)) = layout(kind, several, &plan.backdrop, &mut random) else {
                continue;
            };
            (plan.edit, plan.slots) = (edit, slots);
            if editors::can_all_err(&plan, &mut random) {
                let sprite = |slot: &Slot| Sprite::of(&slot.object, size);
                plan.sprites = plan.slots.iter().map(sprite).collect();
                return Some(plan);
            }
        }
        None
    }

    /// The annotated objects.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.role == Role::Target)
    }

    /// How the targets look.
    pub(super) fn look(&self) -> Option<Look> {
        self.targets().next().map(|slot| slot.object.look)
    }

    /// Draws the scene with these objects.
    pub(super) fn draw(&self, slots: &[Slot], finish: Finish) -> Option<Picture> {
        let mut canvas = self.backdrop.canvas.clone();
        for (at, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.shown) {
            let drawn = self.sprites.get(at).filter(|_| self.slots[at].object == slot.object);
            match drawn {
                Some(sprite) => canvas.lay(sprite),
                None => canvas.lay(&Sprite::of(&slot.object, canvas.size)),
            }
        }
        canvas.finish(finish)
    }

    /// The smallest distance at which two changes count as two.
    pub(super) fn apart(&self) -> f64 {
        0.06 * f64::from(self.backdrop.canvas.size.long_side())
    }
}

/// The gap between two boxes: 0 where they touch.
pub(super) fn gap(a: &PixelBox, b: &PixelBox) -> f64 {
    let x = (a.x1 - b.x2).max(b.x1 - a.x2).max(0.0);
    let y = (a.y1 - b.y2).max(b.y1 - a.y2).max(0.0);
    (x * x + y * y).sqrt()
}

fn picture_size(random: &mut Random) -> Size {
    const SIZES: [(u32, u32); 12] = [
        (960, 720),
        (1024, 683),
        (896, 672),
        (768, 768),
        (720, 960),
        (1024, 576),
        (640, 480),
        (683, 1024),
        (1024, 768),
        (800, 640),
        (1280, 720),
        (1400, 933),
    ];
    let (width, height) = random.pick(&SIZES).unwrap_or((960, 720));
    Size::new(width, height)
}

/// Smallest and largest part of the picture that a target's box may cover.
fn target_areas(kind: Kind, look: &Look, several: bool) -> (f32, f32) {
    let least = match kind {
        _ if look.thing == Thing::Sign => 0.0035,
        Kind::ChangeMaterial => 0.0035,
        _ if look.material.is_some() => 0.0025,
        Kind::ReplaceObject => 0.0025,
        Kind::ChangeShape => 0.0018,
        _ => 0.0013,
    };
    (least, if several { 0.011 } else { 0.042 })
}

/// A part of the picture between two, small ones more often.
fn part(random: &mut Random, (least, most): (f32, f32), bias: f32) -> f32 {
    let u = libm::powf(random.unit(), bias);
    least * libm::powf(most / least, u)
}

fn layout(
    kind: Kind,
    several: bool,
    backdrop: &Backdrop,
    random: &mut Random,
) -> Option<(Edit, Vec<Slot>)> {
    let target = target_look(kind, random)?;
    let mut floor = Floor { backdrop, slots: Vec::new() };
    let count = match (kind, several) {
        (Kind::ChangeCount, _) => 2 + random.below(4),
        (_, true) => 2 + random.below(2),
        _ => 1,
    };
    let edit = Edit::asked(kind, target, count, random)?;
    let after = edit.applied(target);
    let area = part(random, target_areas(kind, &target, several), 1.5);
    let wanted = match edit {
        // One more, so that there can be one too many.
        Edit::Count { from, to } if to > from => to - from + 1,
        _ => 0,
    };
    let results: Vec<Look> = after.into_iter().collect();
    for number in 0..count + wanted {
        let role = if number < count { Role::Target } else { Role::Wanted };
        let area = area * random.range(0.9, 1.12);
        floor.place(target, &results, area, role, random)?;
    }
    let mut seen: Vec<Look> = vec![target];
    seen.extend(results);
    for (look, least) in bystanders(kind, target, &seen, random) {
        let area = part(random, (least, 0.016), 1.2);
        // A crowded scene may lack one or another.
        let _ = floor.place(look, &[], area, Role::Bystander, random);
        seen.push(look);
    }
    for _ in 0..3 {
        let look = stranger(&seen, random)?;
        floor.place(look, &[], part(random, (0.004, 0.012), 1.0), Role::Spare, random)?;
        seen.push(look);
    }
    let bystanders = floor.slots.iter().filter(|slot| slot.role == Role::Bystander).count();
    (bystanders >= 5).then_some((edit, floor.slots))
}

fn target_look(kind: Kind, random: &mut Random) -> Option<Look> {
    let colour = random.pick(&Colour::ALL)?;
    let any = if random.chance(0.5) { Thing::SHAPES } else { Thing::THINGS };
    let thing = random.pick(if kind == Kind::ChangeShape { &Thing::SHAPES } else { &any })?;
    let sort = random.unit();
    let made_of = |materials: &[Material], random: &mut Random| {
        let material = random.pick(materials)?;
        let colour = random.pick_where(&Colour::ALL, |c| is_vivid(*c))?;
        Some(Look::made_of(thing, material, colour))
    };
    match kind {
        Kind::ChangeOcr => Some(Look::sign(random.pick(&WORDS)?, colour)),
        Kind::RemovalObject if sort < 0.15 => Some(Look::sign(random.pick(&WORDS)?, colour)),
        Kind::ChangeMaterial if sort < 0.35 => made_of(&Material::SUBSTANCES, random),
        Kind::ChangeShape | Kind::RemovalObject | Kind::ReplaceObject if sort > 0.75 => {
            made_of(&Material::ALL, random)
        }
        _ => Some(Look::plain(thing, colour)),
    }
}

/// Colours that a pattern or yarn shows well in.
fn is_vivid(colour: Colour) -> bool {
    !matches!(colour, Colour::White | Colour::Grey | Colour::Brown | Colour::Black)
}

/// What else is in the scene, with the smallest part of the picture each may cover.
fn bystanders(kind: Kind, target: Look, taken: &[Look], random: &mut Random) -> Vec<(Look, f32)> {
    let mut looks: Vec<(Look, f32)> = Vec::new();
    let mut add = |look: Option<Look>, least: f32| {
        let Some(look) = look else { return };
        let known = taken.iter().chain(looks.iter().map(|(look, _)| look));
        if !known.into_iter().any(|other| other.clashes(&look)) {
            looks.push((look, least));
        }
    };
    let signs = if kind == Kind::ChangeOcr { 3 } else { 1 + random.below(2) };
    for _ in 0..signs {
        let (word, colour) = (random.pick(&WORDS), random.pick(&Colour::ALL));
        add(word.zip(colour).map(|(word, colour)| Look::sign(word, colour)), 0.0045);
    }
    let all = [Thing::SHAPES, Thing::THINGS].concat();
    for _ in 0..2 {
        // The same thing in another colour, the same colour on another thing.
        if target.thing != Thing::Sign {
            let colour = random.pick(&Colour::ALL);
            add(colour.map(|colour| Look::plain(target.thing, colour)), 0.003);
        }
        let thing = random.pick(&all);
        add(thing.map(|thing| Look::plain(thing, target.colour)), 0.003);
    }
    let total = 8 + random.below(5);
    for number in 0..total {
        let Some(thing) = random.pick(&all) else { continue };
        let look = if number % 4 == 0 {
            let colour = random.pick_where(&Colour::ALL, |c| is_vivid(*c));
            let material = random.pick(&Material::ALL);
            material.zip(colour).map(|(m, colour)| Look::made_of(thing, m, colour))
        } else {
            random.pick(&Colour::ALL).map(|colour| Look::plain(thing, colour))
        };
        add(look, if number % 4 == 0 { 0.004 } else { 0.003 });
    }
    looks.truncate(total);
    looks
}

/// A look that is like nothing in the scene.
fn stranger(taken: &[Look], random: &mut Random) -> Option<Look> {
    let all = [Thing::SHAPES, Thing::THINGS].concat();
    (0..60).find_map(|_| {
        let look = Look::plain(random.pick(&all)?, random.pick(&Colour::ALL)?);
        (!taken.iter().any(|other| other.clashes(&look))).then_some(look)
    })
}

/// Finds room for objects.
struct Floor<'a> {
    backdrop: &'a Backdrop,
    slots: Vec<Slot>,
}

impl Floor<'_> {
    /// Puts an object where it touches no other and stands out from the background, now and
    /// after it looks like any of `later`.
    fn place(
        &mut self,
        look: Look,
        later: &[Look],
        area: f32,
        role: Role,
        random: &mut Random,
    ) -> Option<()> {
        let size = self.backdrop.canvas.size;
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let grounded = look.thing.zone() == Zone::Ground && self.backdrop.horizon.is_some();
        let lean = if grounded || look.thing == Thing::Sign { 0.04 } else { 0.16 };
        let probe = Object {
            look,
            at: [0.5, 0.5],
            scale: 50.0,
            angle: random.range(-lean, lean),
            warp: 0.0,
            blur: 0.0,
            shadow: Shadow::None,
            foot: [0.0; 2],
            seed: random.seed(),
        };
        let pixels = f64::from(area) * width * height;
        let scale = 50.0 * (pixels / probe.bounds().area()).sqrt() as f32;
        let object = Object { scale, ..probe }.on_its_foot();
        let bounds = object.bounds();
        let footprint = later
            .iter()
            .map(|look| object.looking(*look).bounds())
            .fold(bounds, |all, other| all.union(&other));
        let margin = 0.018 * f64::from(size.long_side());
        let (free_x, free_y) =
            (width - footprint.width() - 2.0 * margin, height - footprint.height() - 2.0 * margin);
        if free_x < 1.0 || free_y < 1.0 {
            return None;
        }
        let apart = 0.030 * f64::from(size.long_side());
        for attempt in 0..140u16 {
            let dx = (margin - footprint.x1 + free_x * f64::from(random.unit())) as i32;
            let dy = (margin - footprint.y1 + free_y * f64::from(random.unit())) as i32;
            let shift = |b: &PixelBox| {
                let (dx, dy) = (f64::from(dx), f64::from(dy));
                PixelBox::new(b.x1 + dx, b.y1 + dy, b.x2 + dx, b.y2 + dy)
            };
            let area = shift(&footprint);
            if !self.is_at_home(&look, later, &area)
                || self.slots.iter().any(|slot| gap(&slot.bounds, &area) < apart)
            {
                continue;
            }
            let ground = self.backdrop.canvas.mean(&area);
            let enough = if attempt < 90 { 0.44 } else { 0.37 };
            let faint = |look: &Look| contrast(look.mean(), ground) < enough;
            if faint(&look) || later.iter().any(faint) {
                continue;
            }
            let shadow = self.shadow(&area);
            let object = Object { shadow, ..object }.moved(dx, dy);
            let bounds = shift(&bounds);
            let shown = matches!(role, Role::Target | Role::Bystander);
            self.slots.push(Slot { object, role, shown, bounds, ground });
            return Some(());
        }
        None
    }

    /// No boats in the sky, no kites in the grass, nothing across the horizon.
    fn is_at_home(&self, look: &Look, later: &[Look], area: &PixelBox) -> bool {
        let Some(horizon) = self.backdrop.horizon.map(f64::from) else { return true };
        let above = area.y2 < horizon + 0.02 * area.height();
        let below = area.y2 > horizon + 0.25 * area.height();
        [look].into_iter().chain(later).all(|look| match look.thing.zone() {
            Zone::Sky => above,
            Zone::Ground => below,
            Zone::Anywhere => above || below,
        })
    }

    fn shadow(&self, area: &PixelBox) -> Shadow {
        match self.backdrop.horizon.map(f64::from) {
            None => Shadow::Drop,
            Some(horizon) if area.y2 > horizon + 0.25 * area.height() => Shadow::Contact,
            Some(_) => Shadow::None,
        }
    }
}
