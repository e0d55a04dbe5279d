//! A document as Markdown that pastes into a pull request.

use std::io::{self, Write};

use super::{Block, Document};
use crate::line::{Emphasis, Line};
use crate::markdown::{text, write_table};

impl Document {
    /// Write it.
    pub fn markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        for (index, block) in self.blocks().into_iter().filter(|block| is_shown(block)).enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            write_block(out, block)?;
        }
        Ok(())
    }
}

fn is_shown(block: &Block) -> bool {
    match block {
        Block::Plots(_) | Block::Map(_) | Block::Lines(_) => false,
        Block::List(items) => !items.is_empty(),
        Block::Facts(facts) => !facts.is_empty(),
        _ => true,
    }
}

fn write_block(out: &mut dyn Write, block: &Block) -> io::Result<()> {
    match block {
        Block::Heading(level, line) => {
            writeln!(out, "{} {}", "#".repeat(usize::from(*level) + 1), text(line.text()))
        }
        Block::Paragraph(line) => writeln!(out, "{}", marked(line)),
        Block::Warning(warning) => writeln!(out, "> **Warning:** {}", text(warning)),
        Block::List(items) => items.iter().try_for_each(|item| writeln!(out, "- {}", text(item))),
        Block::Facts(facts) => facts
            .iter()
            .try_for_each(|(name, lines)| writeln!(out, "- **{}** {}", text(name), text(lines.join("; ")))),
        Block::Table(table, _) => write_table(out, &table.important()),
        Block::Plots(_) | Block::Map(_) | Block::Lines(_) | Block::Part(_) => Ok(()),
    }
}

fn marked(line: &Line) -> String {
    let of = |span: &crate::line::Span| match span.emphasis {
        Emphasis::Strong | Emphasis::Bad => format!("**{}**", text(&span.text)),
        Emphasis::Plain | Emphasis::Weak => text(&span.text),
    };
    line.0.iter().map(of).collect()
}
