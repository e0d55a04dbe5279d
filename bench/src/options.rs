//! Options that benchmarks share. Where a benchmark has a default or a text of its own, it says so
//! with `mut_arg`.

use anyhow::{Result, ensure};
use pagewise_model::Bytes;

/// How often, and on what file.
#[derive(clap::Args)]
pub struct Pairs {
    /// Size of the file.
    #[arg(long, default_value = "512MiB")]
    pub file_size: Bytes,
    /// Pairs for each cell.
    #[arg(long, default_value_t = 41)]
    pub pairs: usize,
    /// Seed of the offsets and of the order.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Words that select cells by name.
#[derive(clap::Args)]
pub struct Filter {
    /// Only cells whose name, as printed, holds all these words.
    cells: Vec<String>,
}

impl Filter {
    /// Items of `all` whose names hold every word; an error if there are none.
    pub fn select<T>(&self, all: impl IntoIterator<Item = T>, name: impl Fn(&T) -> String) -> Result<Vec<T>> {
        let named = |cell: &T| self.cells.iter().all(|word| name(cell).contains(word.as_str()));
        let selected: Vec<T> = all.into_iter().filter(named).collect();
        ensure!(!selected.is_empty(), "no cell has all of these words in its name: {}", self.cells.join(" "));
        Ok(selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;

    #[test]
    fn all_words_of_a_filter_count() {
        let filter = Filter { cells: vec!["mmap".to_string(), "16KiB".to_string(), "2t".to_string()] };
        let found = filter.select(Cell::all(), Cell::to_string).expect("cells");
        let found: Vec<String> = found.iter().map(Cell::to_string).collect();
        assert_eq!(found, ["mmap random 16KiB 2t", "mmap sequential 16KiB 2t"]);
        assert!(Filter { cells: vec!["no such".to_string()] }.select(Cell::all(), Cell::to_string).is_err());
    }
}
