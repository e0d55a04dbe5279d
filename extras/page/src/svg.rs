//! Any plot as SVG, alone or within a page. It has no script, and its colours are variables with
//! values for light and dark.
//!
//! A file is complete by itself. On a page the plot's table stands beside the drawing and has its
//! texts, the names of the series stand above it, and the script of the page makes it answer to
//! pointer and keyboard.

mod frame;
mod marks;
pub(crate) mod scale;

use std::fmt::Write as _;

use crate::markup::escaped;
use frame::Frame;
pub(crate) use marks::COLOURS;
use marks::dashes;
use pagewise_report::paragraph::wrapped;
use pagewise_report::plot::{Axis, Plot, Scale};
use scale::Placed;

/// Colours and forms; part of every file, and once in a page.
pub const STYLE: &str = "\
.plot{--ink:#1f2328;--weak:#59636e;--grid:#d9dee3;--paper:#fff;--band:#f2e6c2;--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;--c5:#1b7c83;--c6:#9a6700;--c7:#57606a}
@media(prefers-color-scheme:dark){.plot{--ink:#e6edf3;--weak:#9aa4ae;--grid:#343b43;--paper:#0d1117;--band:#3d3418;--c0:#58a6ff;--c1:#f0883e;--c2:#56d364;--c3:#bc8cff;--c4:#f778ba;--c5:#56d4dd;--c6:#e3b341;--c7:#b1bac4}}
svg.plot text{font:12px system-ui,sans-serif;fill:var(--ink,#1f2328)}
svg.plot .weak{fill:var(--weak,#59636e)}
svg.plot .x text{text-anchor:middle}svg.plot .y text,svg.plot .end{text-anchor:end}
svg.plot .grid{stroke:var(--grid,#d9dee3);fill:none}
svg.plot .paper{fill:var(--paper,#fff)}
svg.plot .band{fill:var(--band,#f2e6c2)}
svg.plot .line,svg.plot .range{fill:none;stroke:currentColor;stroke-width:1.5}
svg.plot circle{fill:currentColor;stroke:currentColor;stroke-width:1.5}
svg.plot .series rect,svg.plot .bars{fill:currentColor}
svg.plot .series path:not([class]){fill:none;stroke:currentColor;stroke-width:8.5;stroke-linecap:round}
svg.plot .invalid{fill:var(--paper,#fff)}
svg.plot .c0{color:var(--c0,#0969da)}svg.plot .c1{color:var(--c1,#bc4c00)}svg.plot .c2{color:var(--c2,#1a7f37)}svg.plot .c3{color:var(--c3,#8250df)}
svg.plot .c4{color:var(--c4,#bf3989)}svg.plot .c5{color:var(--c5,#1b7c83)}svg.plot .c6{color:var(--c6,#9a6700)}svg.plot .c7{color:var(--c7,#57606a)}
@media print{.plot{--ink:#000;--paper:#fff;--grid:#ccc;--weak:#444}}
";

const WIDTH: f64 = 760.0;
const RIGHT: f64 = 24.0;
/// Height of the values of a plot without categories.
const HEIGHT: f64 = 260.0;
/// Height of a category.
const ROW: f64 = 22.0;
/// Height of a line of text.
const LINE: f64 = 18.0;
/// Mean width of a character.
const LETTER: f64 = 7.2;
/// Characters of a line.
const LINE_LETTERS: usize = 100;
/// Characters of a name that are shown.
const MOST_LETTERS: usize = 44;

/// A whole file.
pub fn file(plot: &Plot) -> String {
    drawn(plot, plot.id, true)
}

/// An element of a page, in which `id` is the plot's own: its title is `id` with a `t`.
pub fn element(plot: &Plot, id: &str) -> String {
    drawn(plot, id, false)
}

fn drawn(plot: &Plot, id: &str, is_alone: bool) -> String {
    let names = |axis: &Axis| match &axis.scale {
        Scale::Categories(names) => Some(names.clone()),
        _ => None,
    };
    let rows = names(&plot.y);
    let letters = |text: &str| text.chars().count().min(MOST_LETTERS) as f64 * LETTER;
    let widest = rows.iter().flatten().map(|name| letters(name)).fold(56.0, f64::max);
    let conditions = if is_alone { wrapped("", &plot.conditions, LINE_LETTERS) } else { Vec::new() };
    let (left, top) = (widest + 16.0, if is_alone { 2.8 + conditions.len() as f64 } else { 1.5 } * LINE);
    let height = rows.as_ref().map_or(HEIGHT, |names| names.len() as f64 * ROW + 8.0);
    let bottom = top + height;
    let frame = Frame {
        left,
        top,
        bottom,
        x: Placed::over(&plot.x, plot, true, (left, WIDTH - RIGHT)),
        // The first category is at the top, the lowest value at the bottom.
        y: match rows {
            Some(_) => Placed::over(&plot.y, plot, false, (top, bottom)),
            None => Placed::over(&plot.y, plot, false, (bottom, top)),
        },
        is_alone,
    };
    let mut body = String::new();
    axes(&mut body, plot, &frame);
    for band in &plot.bands {
        if let (Some(low), Some(high)) = (frame.x.at(band.low), frame.x.at(band.high)) {
            let (width, height) = ((high - low).max(1.0), bottom - top);
            let _ = write!(
                body,
                "<g><title>{}</title><rect class=\"band\" x=\"{low:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/></g>",
                escaped(&band.label)
            );
        }
    }
    marks::write(&mut body, plot, &frame);
    let mut below = bottom + 2.4 * LINE;
    let mut head = String::new();
    if is_alone {
        below = legend(&mut body, plot, below);
        let _ = write!(
            head,
            "<rect class=\"paper\" width=\"100%\" height=\"100%\"/><text x=\"8\" y=\"18\" font-weight=\"bold\">{}</text>",
            escaped(plot.heading)
        );
        for (line, y) in conditions.iter().zip((2..).map(|line| f64::from(line) * LINE)) {
            let _ = write!(head, "<text class=\"weak\" x=\"8\" y=\"{y}\">{}</text>", escaped(line));
        }
    }
    let style = if is_alone { format!("<style>{STYLE}</style>") } else { String::new() };
    let values: usize = plot.series.iter().map(|series| series.marks.len()).sum();
    let values = format!("{values} values, {} by {}", plot.y.label, plot.x.label);
    let (namespace, described) = match is_alone {
        true => (" xmlns=\"http://www.w3.org/2000/svg\"", format!("{}: {values}", plot.conditions)),
        false => ("", values),
    };
    format!(
        "<svg{namespace} class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {below:.0}\" aria-labelledby=\"{id}t {id}d\">\
         <title id=\"{id}t\">{}</title><desc id=\"{id}d\">{}</desc>{style}{head}{body}</svg>\n",
        escaped(plot.heading),
        escaped(described),
    )
}

/// A name as long as there is room.
fn cut(name: &str) -> String {
    match name.chars().count() > MOST_LETTERS {
        true => format!("{}…", name.chars().take(MOST_LETTERS - 1).collect::<String>()),
        false => name.to_string(),
    }
}

fn axes(body: &mut String, plot: &Plot, frame: &Frame) {
    let Frame { left, top, bottom, .. } = frame;
    let text = |position: f64| frame.text(position);
    let (first, last, right) = (text(*top), text(*bottom), text(WIDTH - RIGHT));
    let mut grid = String::new();
    let mut labels = format!("<g class=\"x weak\" transform=\"translate(0 {})\">", text(bottom + 15.0));
    for (at, label) in frame.x.ticks(&plot.x) {
        let at = text(at);
        let _ = write!(grid, "M{at} {first}V{last}");
        let _ = write!(labels, "<text x=\"{at}\">{}</text>", escaped(cut(&label)));
    }
    let _ = write!(labels, "</g><g class=\"y\" transform=\"translate({} 4)\">", text(left - 8.0));
    for (at, label) in frame.y.ticks(&plot.y) {
        let at = text(at);
        let _ = write!(grid, "M{} {at}H{right}", text(*left));
        let _ = write!(labels, "<text y=\"{at}\">{}</text>", escaped(cut(&label)));
    }
    let _ = write!(body, "<path class=\"grid\" d=\"{grid}\"/>{labels}</g>");
    if !matches!(plot.y.scale, Scale::Categories(_)) {
        let _ = write!(
            body,
            "<text class=\"weak\" x=\"8\" y=\"{}\">{}</text>",
            text(top - 8.0),
            escaped(&plot.y.label)
        );
    }
    let _ = write!(
        body,
        "<text class=\"weak end\" x=\"{right}\" y=\"{}\">{}</text>",
        text(bottom + 15.0 + LINE),
        escaped(&plot.x.label)
    );
}

/// The names of the series, each with the classes of its colour and its dashes on a page.
pub(crate) fn keys(plot: &Plot) -> impl Iterator<Item = (String, &str)> {
    plot.series.iter().enumerate().map(|(index, series)| {
        let number = series.colour.unwrap_or(index);
        let dashed = if number < COLOURS { "" } else { " dashed" };
        (format!("c{}{dashed}", number % COLOURS), series.name.as_str())
    })
}

/// Write the names of the series, in their order, and return the height of all.
fn legend(body: &mut String, plot: &Plot, top: f64) -> f64 {
    body.push_str("<g class=\"keys\">");
    let (mut x, mut y) = (8.0, top + LINE);
    for (index, series) in plot.series.iter().enumerate() {
        let (index, name) = (series.colour.unwrap_or(index), cut(&series.name));
        let width = name.chars().count() as f64 * LETTER + 34.0;
        if x + width > WIDTH && x > 8.0 {
            (x, y) = (8.0, y + LINE);
        }
        let _ = write!(
            body,
            "<g class=\"c{}\"><path class=\"line\"{} d=\"M{x:.1} {:.1}h16\"/><circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text></g>",
            index % COLOURS,
            dashes(index),
            y - 4.0,
            x + 8.0,
            y - 4.0,
            x + 22.0,
            escaped(name)
        );
        x += width;
    }
    body.push_str("</g>");
    y + 10.0
}
