//! The marks of a plot, by series.
//!
//! In a file, a mark is a circle or a rectangle with its text as a title. On a page, marks whose
//! texts stand in the plot's table are parts of one path, and `data-cells` has the places of these
//! texts. A value that has no position on its axis has no mark; the table has it.

use std::fmt::Write as _;

use super::frame::Frame;
use crate::markup::escaped;
use pagewise_report::plot::{Form, Mark, MarkText, Plot, Scale};

/// Colours of series; others have dashes.
pub(crate) const COLOURS: usize = 8;
/// Height of a bar.
const BAR: f64 = 14.0;
/// Least width of a bar.
const THINNEST: f64 = 0.5;
/// Values of a line on a page that have dots: those of more hide the line.
const MOST_DOTS: usize = 40;

/// Series beyond the colours have dashes.
pub(super) fn dashes(index: usize) -> String {
    match index / COLOURS {
        0 => String::new(),
        repeat => format!(" stroke-dasharray=\"{} 3\"", 2 + 3 * (repeat % 4)),
    }
}

/// A mark with its position.
struct Placed<'a> {
    mark: &'a Mark,
    x: f64,
    y: f64,
    /// Width of a bar.
    width: Option<f64>,
}

pub(super) fn write(body: &mut String, plot: &Plot, frame: &Frame) {
    // The end of the last bar of each category.
    let mut ends: Vec<f64> = Vec::new();
    *body += "<g class=\"series\">";
    for (index, series) in plot.series.iter().enumerate() {
        let placed: Vec<Placed<'_>> =
            series.marks.iter().filter_map(|mark| Placed::of(mark, plot.form, frame, &mut ends)).collect();
        let number = series.colour.unwrap_or(index);
        let _ = write!(body, "<g class=\"c{}\">", number % COLOURS);
        let ranges: String = placed.iter().map(|one| one.range(plot, frame)).collect();
        let is_labelled = |one: &Placed<'_>| !frame.is_alone && place(one.mark).is_some();
        let (labelled, own): (Vec<_>, Vec<_>) = placed.iter().partition(|one| is_labelled(one));
        let (invalid, valid): (Vec<_>, Vec<_>) = labelled.into_iter().partition(|one| one.mark.invalid);
        let is_dense = plot.form == Form::Lines && valid.len() == placed.len() && placed.len() > MOST_DOTS;
        if plot.form == Form::Lines && !placed.is_empty() {
            let dashes = dashes(number);
            let cells = if is_dense { cells(&valid) } else { String::new() };
            let line = path(&placed.iter().collect::<Vec<_>>(), frame, 'l').replacen('l', "m", 1);
            let _ = write!(body, "<path class=\"line\"{dashes}{cells} d=\"{line}\"/>");
        }
        if !ranges.is_empty() {
            let _ = write!(body, "<path class=\"range\" d=\"{ranges}\"/>");
        }
        if !valid.is_empty() && !is_dense {
            let class = if plot.form == Form::Bars { " class=\"bars\"" } else { "" };
            let _ = write!(body, "<path{class}{} d=\"{}\"/>", cells(&valid), path(&valid, frame, 'm'));
        }
        if !invalid.is_empty() {
            let elements: String = invalid.iter().map(|one| one.element(frame, "")).collect();
            let _ = write!(body, "<g{}>{elements}</g>", cells(&invalid));
        }
        for one in own {
            let title = format!("<title>{}</title>", escaped(plot.text(one.mark)));
            *body += &one.element(frame, &title);
        }
        *body += "</g>";
    }
    *body += "</g>";
}

impl<'a> Placed<'a> {
    /// `None` if the mark has no position.
    fn of(mark: &'a Mark, form: Form, frame: &Frame, ends: &mut Vec<f64>) -> Option<Self> {
        let y = frame.y.at(mark.y)?;
        if form != Form::Bars {
            return Some(Self { mark, x: frame.x.at(mark.x)?, y, width: None });
        }
        let row = mark.y as usize;
        ends.resize(ends.len().max(row + 1), 0.0);
        let (x, end) = (frame.x.at(ends[row])?, frame.x.at(ends[row] + mark.x)?);
        ends[row] += mark.x;
        Some(Self { mark, x, y: y - BAR / 2.0, width: Some((end - x).max(THINNEST)) })
    }

    /// An element of its own.
    fn element(&self, frame: &Frame, content: &str) -> String {
        let (x, y) = (frame.text(self.x), frame.text(self.y));
        let state = if self.mark.invalid { " class=\"invalid\"" } else { "" };
        let (name, form) = match self.width {
            None => ("circle", format!("cx=\"{x}\" cy=\"{y}\" r=\"3.5\"")),
            Some(width) => {
                let width = frame.text(width);
                ("rect", format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BAR}\""))
            }
        };
        match content {
            "" => format!("<{name}{state} {form}/>"),
            content => format!("<{name}{state} {form}>{content}</{name}>"),
        }
    }

    /// Part of a path: the interval of the mark, if it has one.
    fn range(&self, plot: &Plot, frame: &Frame) -> String {
        let is_horizontal = matches!(plot.y.scale, Scale::Categories(_));
        let scale = if is_horizontal { &frame.x } else { &frame.y };
        let end = |value: Option<f64>| Some(frame.text(scale.at(value?)?));
        let (Some(low), Some(high)) = (end(self.mark.low), end(self.mark.high)) else {
            return String::new();
        };
        let text = |position: f64| frame.text(position);
        match is_horizontal {
            true => format!("M{low} {}H{high}m0-4v8M{low} {}v8", text(self.y), text(self.y - 4.0)),
            false => format!("M{} {low}V{high}m-4 0h8M{} {low}h8", text(self.x), text(self.x - 4.0)),
        }
    }
}

/// A path of parts, each of which begins at its distance from the one before. That of a line has no
/// content, and a dot is the round end of a line without length.
fn path(marks: &[&Placed<'_>], frame: &Frame, command: char) -> String {
    let mut path = String::new();
    let mut before = (0.0, 0.0);
    for one in marks {
        let at = (frame.rounded(one.x), frame.rounded(one.y));
        let (right, down) = (frame.text(at.0 - before.0), frame.text(at.1 - before.1));
        let gap = if down.starts_with('-') { "" } else { " " };
        let _ = write!(path, "{command}{right}{gap}{down}");
        before = at;
        match one.width.map(|width| frame.text(width)) {
            _ if command == 'l' => {}
            None => path += "h0",
            Some(width) => path += &format!("h{width}v{BAR}h-{width}z"),
        }
    }
    path
}

/// Row and column of the text of a mark, and its part if it is one of several in a cell.
fn place(mark: &Mark) -> Option<Vec<usize>> {
    match mark.text {
        MarkText::Own(_) => None,
        MarkText::Cell(row, column) => Some(vec![row, column]),
        MarkText::Part(row, column, part) => Some(vec![row, column, part]),
    }
}

/// An attribute: the first and the last place of each piece of a row, of a column or of a cell.
fn cells(marks: &[&Placed<'_>]) -> String {
    let mut pieces: Vec<[Vec<usize>; 2]> = Vec::new();
    for place in marks.iter().filter_map(|one| place(one.mark)) {
        match pieces.last_mut() {
            Some([first, last]) if goes_on(first, last, &place) => *last = place,
            _ => pieces.push([place.clone(), place]),
        }
    }
    let text = |place: &[usize]| place.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let piece = |[first, last]: &[Vec<usize>; 2]| match first == last {
        true => text(first),
        false => format!("{}:{}", text(first), text(last)),
    };
    let pieces: Vec<String> = pieces.iter().map(piece).collect();
    format!(" data-cells=\"{}\"", pieces.join(" "))
}

/// True if the place is the next one in the direction of the piece.
fn goes_on(first: &[usize], last: &[usize], place: &[usize]) -> bool {
    let is_along = |along: usize| {
        let mut others = (0..last.len()).filter(|index| *index != along);
        place[along] == last[along] + 1
            && others.all(|index| first[index] == last[index] && place[index] == last[index])
    };
    place.len() == last.len() && (0..place.len()).any(is_along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_one_direction_are_one_piece() {
        let of = |texts: Vec<MarkText>| {
            let marks: Vec<Mark> = texts.into_iter().map(|text| Mark { text, ..Mark::default() }).collect();
            let placed: Vec<Placed<'_>> =
                marks.iter().map(|mark| Placed { mark, x: 0.0, y: 0.0, width: None }).collect();
            cells(&placed.iter().collect::<Vec<_>>())
        };
        let cell = MarkText::Cell;
        // The end of a row is no part of a column.
        let row = vec![cell(0, 1), cell(0, 2), cell(1, 2), cell(2, 2), cell(2, 5)];
        assert_eq!(of(row), " data-cells=\"0,1:0,2 1,2:2,2 2,5\"");
        let part = |part| MarkText::Part(3, 5, part);
        assert_eq!(of(vec![cell(3, 5), part(0), part(1), part(2)]), " data-cells=\"3,5 3,5,0:3,5,2\"");
    }
}
