//! A document on a page.

use pagewise_report::document::{Block, Document};

use super::html::{Html, OnPage};
use super::{map, sections};
use crate::plots::colours::Colours;

impl OnPage for Document {
    fn add_to(&self, page: &mut Html, room: usize) {
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
