//! Consumption of the bytes that a method brought in: one consumer for all methods.

/// The number of newline bytes.
#[inline(always)]
pub(crate) fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Evaluates `$call` with `$consumer` as the function for `$consumption`, so that a loop is
/// compiled for each.
macro_rules! by_consumer {
    ($consumption:expr, |$consumer:ident| $call:expr) => {{
        let consumption = $consumption;
        match consumption.consume {
            pagewise_model::Consume::Touch => {
                let $consumer = move |bytes: &[u8]| pagewise_model::checksum::touch(bytes, &consumption);
                $call
            }
            pagewise_model::Consume::Sum => {
                let $consumer = pagewise_model::checksum::sum;
                $call
            }
            pagewise_model::Consume::Lines => {
                let $consumer = $crate::consume::lines;
                $call
            }
        }
    }};
}
pub(crate) use by_consumer;

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::{checksum, content};

    #[test]
    fn lines_are_counted_as_the_plain_counter_does() {
        let mut bytes = vec![0; 5000];
        content::fill(3, 0, &mut bytes);
        for byte in bytes.iter_mut().step_by(7) {
            *byte = b'\n';
        }
        for start in 0..70 {
            for end in [start, start + 1, start + 63, start + 64, start + 1000, 5000] {
                let piece = &bytes[start..end];
                assert_eq!(lines(piece), checksum::lines(piece), "{start}..{end}");
            }
        }
    }
}
