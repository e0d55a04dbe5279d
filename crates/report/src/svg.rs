//! Any plot as SVG, alone or within a page. It has no script, and its colours are variables with
//! values for light and dark.
//!
//! A mark is a circle or a rectangle with its text as a title, within the group of its series. A
//! value that has no position on its axis has no mark; the plot's table has it. The script of a
//! page makes the drawing answer to pointer and keyboard.

pub(crate) mod scale;

use std::fmt::Write as _;

use crate::markup::escaped;
use crate::paragraph::wrapped;
use crate::plots::plot::{Axis, Form, Mark, Plot, Scale};
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
svg.plot .series rect{fill:currentColor}
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
const COLOURS: usize = 8;

/// A whole file.
pub fn file(plot: &Plot) -> String {
    drawn(plot, plot.id, true)
}

/// An element of a page, in which `id` is the plot's own.
pub fn element(plot: &Plot, id: &str) -> String {
    drawn(plot, id, false)
}

/// Positions of the parts of a plot.
struct Frame {
    left: f64,
    top: f64,
    bottom: f64,
    x: Placed,
    y: Placed,
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
    marks(&mut body, plot, &frame);
    let below = legend(&mut body, plot, bottom + 2.4 * LINE);
    let mut head = String::new();
    if is_alone {
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
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" role=\"img\" viewBox=\"0 0 {WIDTH} {below:.0}\" aria-labelledby=\"{id}-title {id}-desc\">\
         <title id=\"{id}-title\">{}</title><desc id=\"{id}-desc\">{}: {values} values, {} by {}</desc>{style}{head}{body}</svg>\n",
        escaped(plot.heading),
        escaped(&plot.conditions),
        escaped(&plot.y.label),
        escaped(&plot.x.label),
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
    let right = WIDTH - RIGHT;
    let (mut grid, mut labels) = (String::new(), String::from("<g class=\"x weak\">"));
    for (at, label) in frame.x.ticks(&plot.x) {
        let _ = write!(grid, "M{at:.1} {top:.1}V{bottom:.1}");
        let _ =
            write!(labels, "<text x=\"{at:.1}\" y=\"{:.1}\">{}</text>", bottom + 15.0, escaped(cut(&label)));
    }
    labels.push_str("</g><g class=\"y\">");
    for (at, label) in frame.y.ticks(&plot.y) {
        let _ = write!(grid, "M{left:.1} {at:.1}H{right:.1}");
        let _ = write!(
            labels,
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left - 8.0,
            at + 4.0,
            escaped(cut(&label))
        );
    }
    let _ = write!(body, "<path class=\"grid\" d=\"{grid}\"/>{labels}</g>");
    if !matches!(plot.y.scale, Scale::Categories(_)) {
        let _ = write!(
            body,
            "<text class=\"weak\" x=\"8\" y=\"{:.1}\">{}</text>",
            top - 8.0,
            escaped(&plot.y.label)
        );
    }
    let _ = write!(
        body,
        "<text class=\"weak end\" x=\"{right:.1}\" y=\"{:.1}\">{}</text>",
        bottom + 15.0 + LINE,
        escaped(&plot.x.label)
    );
}

fn marks(body: &mut String, plot: &Plot, frame: &Frame) {
    // The end of the last bar of each category.
    let mut ends: Vec<f64> = Vec::new();
    for (index, series) in plot.series.iter().enumerate() {
        let index = series.colour.unwrap_or(index);
        let (colour, dashed) = (index % COLOURS, dashes(index));
        let mut path = String::new();
        let mut found = String::new();
        for mark in &series.marks {
            if plot.form == Form::Bars {
                bar(&mut found, mark, frame, &mut ends);
                continue;
            }
            let (Some(x), Some(y)) = (frame.x.at(mark.x), frame.y.at(mark.y)) else { continue };
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { "M" } else { "L" });
            let state = if mark.invalid.is_some() { " class=\"invalid\"" } else { "" };
            let _ = write!(
                found,
                "{}<circle{state} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}</title></circle>",
                range(plot, mark, frame, (x, y)),
                escaped(text(mark))
            );
        }
        let _ = write!(body, "<g class=\"series c{colour}\">");
        if plot.form == Form::Lines && !path.is_empty() {
            let _ = write!(body, "<path class=\"line\"{dashed} d=\"{path}\"/>");
        }
        let _ = write!(body, "{found}</g>");
    }
}

/// Series beyond the colours have dashes.
fn dashes(index: usize) -> String {
    match index / COLOURS {
        0 => String::new(),
        repeat => format!(" stroke-dasharray=\"{} 3\"", 2 + 3 * (repeat % 4)),
    }
}

fn text(mark: &Mark) -> String {
    match &mark.invalid {
        Some(reason) => format!("{} (invalid: {reason})", mark.label),
        None => mark.label.clone(),
    }
}

/// The interval of a mark.
fn range(plot: &Plot, mark: &Mark, frame: &Frame, (x, y): (f64, f64)) -> String {
    let (Some(low), Some(high)) = (mark.low, mark.high) else { return String::new() };
    let is_horizontal = matches!(plot.y.scale, Scale::Categories(_));
    let scale = if is_horizontal { &frame.x } else { &frame.y };
    let (Some(low), Some(high)) = (scale.at(low), scale.at(high)) else { return String::new() };
    let ends = match is_horizontal {
        true => format!("M{low:.1} {y:.1}H{high:.1}m0 -4v8M{low:.1} {:.1}v8", y - 4.0),
        false => format!("M{x:.1} {low:.1}V{high:.1}m-4 0h8M{:.1} {low:.1}h8", x - 4.0),
    };
    format!("<path class=\"range\" d=\"{ends}\"/>")
}

fn bar(found: &mut String, mark: &Mark, frame: &Frame, ends: &mut Vec<f64>) {
    let Some(middle) = frame.y.at(mark.y) else { return };
    let row = mark.y as usize;
    ends.resize(ends.len().max(row + 1), 0.0);
    let (Some(from), Some(to)) = (frame.x.at(ends[row]), frame.x.at(ends[row] + mark.x)) else { return };
    ends[row] += mark.x;
    let _ = write!(
        found,
        "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"><title>{}</title></rect>",
        middle - 7.0,
        (to - from).max(0.5),
        escaped(&mark.label)
    );
}

/// Write the names of the series, in their order, and return the height of all.
fn legend(body: &mut String, plot: &Plot, top: f64) -> f64 {
    let _ = write!(body, "<g class=\"keys\" data-top=\"{top:.0}\">");
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
