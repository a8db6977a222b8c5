//! Metrics of one step: named numbers, in the order in which they were first set.

use std::collections::HashMap;

/// An ordered map from metric name to value. It usually has about a hundred names; a reward function may add many more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    values: Vec<(String, f64)>,
    /// Index of each name in `values`.
    places: HashMap<String, usize>,
}

impl Metrics {
    /// Creates an empty set of metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a metric. An earlier value of the same name is replaced in place, as in verl's metrics dictionary.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        let name = name.into();
        match self.places.get(&name) {
            Some(place) => self.values[*place].1 = value,
            None => {
                self.places.insert(name.clone(), self.values.len());
                self.values.push((name, value));
            }
        }
    }

    /// Returns the value of a metric; `None` if it was never set.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.places.get(name).map(|place| self.values[*place].1)
    }

    /// Returns all metrics, in the order in which they were first set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Returns true if no metric was set.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the number of metrics.
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

impl<S: Into<String>> Extend<(S, f64)> for Metrics {
    fn extend<I: IntoIterator<Item = (S, f64)>>(&mut self, metrics: I) {
        metrics.into_iter().for_each(|(name, value)| self.set(name, value));
    }
}

impl<S: Into<String>> FromIterator<(S, f64)> for Metrics {
    fn from_iter<I: IntoIterator<Item = (S, f64)>>(metrics: I) -> Self {
        let mut collected = Self::new();
        collected.extend(metrics);
        collected
    }
}

impl IntoIterator for Metrics {
    type Item = (String, f64);
    type IntoIter = std::vec::IntoIter<(String, f64)>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_values_replace_earlier_ones_in_place() {
        let mut metrics: Metrics = [("b", 1.0), ("a", 2.0)].into_iter().collect();
        metrics.extend([("b", 3.0), ("c", 4.0)]);
        assert_eq!(metrics.iter().collect::<Vec<_>>(), [("b", 3.0), ("a", 2.0), ("c", 4.0)]);
        assert_eq!((metrics.get("a"), metrics.get("d")), (Some(2.0), None));
    }
}
