//! Values by keys that need no order: the keys, and the values of each, stay in that of their
//! arrival.

/// Values by their keys.
pub fn by_key<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups = Vec::new();
    pairs.into_iter().for_each(|(key, value)| add(&mut groups, key, value));
    groups
}

/// Add a value to those of its key.
pub fn add<K: PartialEq, V>(groups: &mut Vec<(K, Vec<V>)>, key: K, value: V) {
    match groups.iter_mut().find(|(known, _)| *known == key) {
        Some((_, values)) => values.push(value),
        None => groups.push((key, vec![value])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_stay_in_order() {
        let pairs = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(by_key(pairs), [("b", vec![1, 3]), ("a", vec![2])]);
    }
}
