//! Chance that is the same everywhere: a generator of our own, on integers and plain arithmetic only.

/// SplitMix64: small, fast, and fixed for ever.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator for one purpose (`stream`) of one case (`index`) of one seed.
    pub(crate) fn new(seed: u64, index: u64, stream: u64) -> Self {
        let mut random = Self(seed);
        for salt in [index, stream] {
            random.0 = random.bits() ^ salt.wrapping_mul(0xd134_2543_de82_ef95);
        }
        random
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 32 random bits, to seed something smaller.
    pub(crate) fn seed(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// A number in `0..1`.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 24) as f32
    }

    /// A number in `from..to`.
    pub(crate) fn range(&mut self, from: f32, to: f32) -> f32 {
        from + (to - from) * self.unit()
    }

    /// A whole number in `0..count`; 0 where `count` is 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        (((self.bits() >> 32) * count as u64) >> 32) as usize
    }

    /// True with probability `p`.
    pub(crate) fn chance(&mut self, p: f32) -> bool {
        self.unit() < p
    }

    /// One of `items`, if there is one.
    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.below(items.len())).copied()
    }

    /// One of `items` that `fits`, if there is one.
    pub(crate) fn pick_where<T: Copy>(
        &mut self,
        items: &[T],
        fits: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let fitting: Vec<T> = items.iter().copied().filter(fits).collect();
        self.pick(&fitting)
    }

    /// `items` in another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
