//! Checked products of sizes from settings and files.

use super::machine::amount;

/// A size with the key that sets it, or with a description.
pub type NamedSize<'a> = (&'a str, usize);

/// Returns the product of some sizes: the number of `things`, each of at least `bytes` bytes.
///
/// # Errors
/// If the product exceeds `max`: the sizes with their keys, and the memory needed.
pub fn product(sizes: &[NamedSize], things: &str, bytes: usize, max: usize) -> Result<usize, String> {
    let product = sizes.iter().try_fold(1_u128, |product, (_, size)| product.checked_mul(*size as u128));
    if let Some(product) = product.and_then(|product| usize::try_from(product).ok()).filter(|product| *product <= max) {
        return Ok(product);
    }
    let sizes: Vec<String> = sizes.iter().map(|(key, size)| format!("{key} {size}")).collect();
    let takes = product.map_or("more than can be counted".to_owned(), |product| {
        format!("{product}, which would take at least {} of memory", amount(product.saturating_mul(bytes as u128)))
    });
    Err(format!("the number of {things} is {} = {takes}; at most {max} are possible", sizes.join(" × ")))
}

/// Returns the key of the largest size.
pub fn largest<'a>(sizes: &[NamedSize<'a>]) -> &'a str {
    sizes.iter().max_by_key(|(_, size)| *size).map_or("", |(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_that_is_too_large_names_its_factors_and_its_memory() {
        let of = |sizes: &[NamedSize]| product(sizes, "tokens", 4, 1 << 40);
        assert_eq!(of(&[("`a`", 1 << 20), ("`b`", 1 << 20)]), Ok(1 << 40));
        assert_eq!(
            of(&[("`a`", 1 << 20), ("`b`", (1 << 20) + 1)]).unwrap_err(),
            "the number of tokens is `a` 1048576 × `b` 1048577 = 1099512676352, which would take at least 4.0 TiB of memory; at most \
             1099511627776 are possible"
        );
        assert!(of(&[("`a`", usize::MAX); 3]).unwrap_err().contains("= more than can be counted;"));
        assert_eq!(largest(&[("a", 1), ("b", 7), ("c", 2)]), "b");
    }
}
