//! Bars of letters: horizontal ones beside figures, and vertical ones of rates over time.

/// Eighths of a horizontal bar.
const HORIZONTAL: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// Eighths of a vertical bar.
const VERTICAL: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A bar of a share of `width` columns.
pub(crate) fn horizontal(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar: String = std::iter::repeat_n(HORIZONTAL[7], eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        bar.push(HORIZONTAL[eighths % 8 - 1]);
    } else if eighths == 0 {
        bar.push(HORIZONTAL[0]);
    }
    format!("{bar:width$}")
}

/// A bar of a share of a line.
pub fn vertical(share: f64) -> char {
    VERTICAL[((share.clamp(0.0, 1.0) * 8.0).ceil() as usize).saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(horizontal(1.0, 4), "████");
        assert_eq!(horizontal(0.5, 4), "██  ");
        assert_eq!(horizontal(0.53125, 4), "██▏ ");
        assert_eq!(horizontal(0.0001, 4), "▏   ", "never nothing");
        assert_eq!([0.0, 0.1, 0.5, 1.0].map(vertical), ['▁', '▁', '▄', '█']);
    }
}
