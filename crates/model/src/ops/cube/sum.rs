//! Sums and maxima over the units of a cube, by repeated halving: the order is fixed, so results do not depend on timing.

use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;

/// Combines one value of each unit: by sum or by maximum.
#[cube]
fn combined(value: f32, scratch: &mut [f32], #[comptime] units: usize, #[comptime] largest: bool) -> f32 {
    let unit = UNIT_POS as usize;
    scratch[unit] = value;
    sync_cube();
    let mut half = (units / 2).runtime();
    while half > 0 {
        if unit < half {
            let other = scratch[unit + half];
            if largest {
                if other > scratch[unit] {
                    scratch[unit] = other;
                }
            } else {
                scratch[unit] += other;
            }
        }
        sync_cube();
        half /= 2;
    }
    let result = scratch[0];
    sync_cube();
    result
}

/// Sums one value of each unit. Every unit gets the sum; `scratch` has one element per unit and may be reused at once.
#[cube]
pub(crate) fn sum_of_units(value: f32, scratch: &mut [f32], #[comptime] units: usize) -> f32 {
    combined(value, scratch, units, false)
}

/// Returns the largest value of all units to every unit; `scratch` has one element per unit and may be reused at once.
#[cube]
pub(crate) fn max_of_units(value: f32, scratch: &mut [f32], #[comptime] units: usize) -> f32 {
    combined(value, scratch, units, true)
}

/// Sums the values of the units before this unit; `scratch` has one element per unit and may be reused at once.
#[cube]
pub(crate) fn sum_before(value: f32, scratch: &mut [f32]) -> f32 {
    let unit = UNIT_POS as usize;
    scratch[unit] = value;
    sync_cube();
    let mut sum = 0f32;
    let mut i = 0usize;
    while i < unit {
        sum += scratch[i];
        i += 1;
    }
    sync_cube();
    sum
}
