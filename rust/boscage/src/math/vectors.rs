//! Loops that are compiled for the vectors of the processor on which they run.

/// Runs a block with 256-bit vectors where the processor has them: `with_vectors!(|| { ... })`. Results do not depend on the
/// vectors, as sums keep their order. The block has no `return`.
///
/// Only what is inlined into the block is compiled for these vectors, so functions that it calls in its loops must be
/// `#[inline(always)]`. With `move` it has copies of numbers, which loops can keep in registers.
macro_rules! with_vectors {
    (move || $work:block) => {
        $crate::math::vectors::with_vectors!(@ (move) $work)
    };
    (|| $work:block) => {
        $crate::math::vectors::with_vectors!(@ () $work)
    };
    (@ ($($by_value:tt)?) $work:block) => {{
        let once = $crate::math::vectors::Once;
        pulp::Arch::new().dispatch(
            #[inline(always)]
            $($by_value)? || {
                let _once = once;
                $work
            },
        )
    }};
}
pub(crate) use with_vectors;

/// What a closure can use only once. A closure that could be called twice is called by way of a function that is not always
/// inlined: the factor of a matrix then takes twice as long.
pub(crate) struct Once;
