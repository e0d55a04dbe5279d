//! A document on a page.

use super::{Block, Document};
use crate::page::html::Html;
use crate::page::{map, sections};
use crate::plots::colours::Colours;

impl Document {
    /// Add it to a page; its plots may take about `room` bytes.
    pub(crate) fn add_to(&self, page: &mut Html, room: usize) {
        self.blocks().into_iter().for_each(|block| add(page, block, room));
    }
}

fn add(page: &mut Html, block: &Block, room: usize) {
    match block {
        Block::Heading(level, line) => page.heading(*level, line.text()),
        Block::Paragraph(line) => page.line(line),
        Block::Warning(warning) => page.warning(warning),
        Block::List(items) => page.list(items),
        Block::Facts(facts) => page.terms(facts.iter().map(|(name, lines)| (name, lines))),
        Block::Table(table, label) => page.table(&table.important(), label),
        Block::Plots(plots) => sections::draw(page, plots, 1, room),
        // No plot of these methods stands beside it.
        Block::Map(methods) => map::draw(page, methods, &Colours::default()),
        Block::Lines(_) | Block::Part(_) => {}
    }
}
