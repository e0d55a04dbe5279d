//! Values that need no order, by keys or once each: keys and values stay in that of their arrival.

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

/// Each value once.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_stay_in_order() {
        let pairs = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(by_key(pairs), [("b", vec![1, 3]), ("a", vec![2])]);
        assert_eq!(distinct(pairs.map(|(key, _)| key)), ["b", "a"]);
    }
}
