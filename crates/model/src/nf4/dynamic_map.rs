//! The 256 values of bitsandbytes' 8-bit numbers, between −1 and 1 and denser near 0.

/// Returns the values of the codes: bitsandbytes' `create_dynamic_map`. Each power of ten from 1e-6 to 1 has twice as many values
/// as the one below it: the midpoints of an even division.
pub fn dynamic_map(signed: bool) -> [f32; 256] {
    let mut map = vec![0.0, 1.0];
    for exponent in 0i32..7 {
        let bounds = (1usize << if signed { exponent } else { exponent + 1 }) + 1;
        let step = (1.0 - 0.1f32) / (bounds - 1) as f32;
        // torch's linspace counts from both ends of the range.
        let bound = |i: usize| match i < bounds / 2 {
            true => step.mul_add(i as f32, 0.1),
            false => step.mul_add(-((bounds - 1 - i) as f32), 1.0),
        };
        for i in 0..bounds - 1 {
            let value = 10f64.powi(exponent - 6) as f32 * ((bound(i) + bound(i + 1)) / 2.0);
            map.push(value);
            if signed {
                map.push(-value);
            }
        }
    }
    map.sort_by(f32::total_cmp);
    map.try_into().expect("0 and 1, and 254 between the powers of ten")
}
