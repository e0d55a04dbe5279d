//! Tables: sorted by the numbers behind their texts, and filtered.

use pagewise_analysis::judge;
use pagewise_page::PAGE;
use pagewise_report::judged_run::JudgedRun;
use pagewise_report::text_table::TextCell;
use serde_json::json;

use crate::browser::browser;
use crate::{constructed, written};

#[test]
fn a_heading_sorts_by_number_and_back() {
    let Some(mut browser) = browser() else { return };
    let run = constructed::complete();
    browser.open(&written("complete", &run));
    // The numbers behind the texts of each table that stands beside a plot.
    let judged = judge(&run);
    let shown = JudgedRun::of("run.jsonl", &run, &judged);
    let plots = (PAGE.plots)(std::slice::from_ref(&shown));
    let numbers = |row: &Vec<TextCell>| row.iter().map(|cell| cell.value).collect::<Vec<_>>();
    let values: Vec<Vec<_>> =
        plots.iter().map(|drawn| drawn.plot.table.rows.iter().map(numbers).collect()).collect();
    // Every column of every table: by number if any cell has one, with the unknown last, else by
    // text.
    let wrong = browser.evaluate(&format!(
        "(() => {{ const wrong = [], values = {}, collator = new Intl.Collator('en', {{ numeric: true }});
           const sorted = (values, sign) => values.every((value, at) => at === 0 || sign * (value - values[at - 1]) >= 0);
           const inOrder = (texts, sign) => texts.every((text, at) => at === 0 || sign * collator.compare(text, texts[at - 1]) >= 0);
           const figures = [...document.querySelectorAll('figure')];
           for (const table of document.querySelectorAll('table')) {{
             const rows = [...table.tBodies[0].rows], now = () => [...table.tBodies[0].rows];
             const known = values[figures.indexOf(table.closest('figure'))];
             [...table.tHead.rows[0].cells].forEach((heading, column) => {{
               const button = heading.querySelector('button');
               if (!button) return;
               const isNumber = known?.some(row => row[column] !== null) ?? heading.dataset.order !== undefined;
               // Tables of figures have values here; others the page's own order.
               const given = heading.dataset.order ?? '', digits = (rows.length - 1).toString(36).length;
               const ranks = new Map((given.match(new RegExp(`.{{${{digits}}}}`, 'g')) ?? []).map((index, at) => [rows[parseInt(index, 36)], at]));
               for (const [order, sign] of [['ascending', 1], ['descending', -1]]) {{
                 button.click();
                 const number = row => {{ const plain = Number(row.cells[column].textContent); return Number.isNaN(plain) ? null : plain; }};
                 const isPlain = rows.every(row => number(row) !== null);
                 const value = row => known ? known[rows.indexOf(row)][column] : isPlain ? number(row) : ranks.get(row) ?? null;
                 const all = now().map(value), numbers = all.filter(value => value !== null && !Number.isNaN(value));
                 const first = all.slice(0, numbers.length);
                 const right = isNumber ? sorted(numbers, sign) && first.every((value, at) => value === numbers[at])
                   : inOrder(now().map(row => row.cells[column].textContent), sign);
                 if (heading.ariaSort !== order || !right) wrong.push(heading.textContent + ' ' + order);
               }}
               button.click();
               if (heading.ariaSort !== 'none' || now().some((row, at) => row !== rows[at])) wrong.push(heading.textContent);
             }});
           }}
           return wrong; }})()",
        json!(values)
    ));
    assert_eq!(wrong, json!([]));
    // As texts, 9.9k would stand behind 10.1k, and 27.6 µs before 1.2 ms by chance alone.
    let differs = browser.evaluate(
        "[...document.querySelectorAll('table')].some(table => [...table.tHead.rows[0].cells].some((heading, column) => {
           if (heading.dataset.order === undefined || !heading.querySelector('button')) return false;
           heading.querySelector('button').click();
           const texts = [...table.tBodies[0].rows].map(row => row.cells[column].textContent);
           return texts.join('|') !== [...texts].sort().join('|'); }))",
    );
    assert_eq!(differs, json!(true));
    browser.expect_quiet();
}

#[test]
fn a_filter_leaves_the_rows_that_have_the_words() {
    let Some(mut browser) = browser() else { return };
    browser.open(&written("complete", &constructed::complete()));
    let field = "document.querySelector('[aria-label=\"Every check\"]').previousElementSibling.querySelector('input')";
    browser.evaluate(&format!(
        "document.querySelectorAll('details').forEach(one => one.open = true); {field}.focus()"
    ));
    browser.call("Input.insertText", json!({ "text": "CHECKSUM wrong" }));
    let found = browser.evaluate(&format!(
        "(() => {{ const rows = [...document.querySelector('[aria-label=\"Every check\"] tbody').rows];
           const shown = rows.filter(row => row.getBoundingClientRect().height > 0);
           const shownCount = {field}.closest('p').querySelector('output').textContent;
           return [shown.map(row => row.cells[0].textContent), shownCount === `${{shown.length}} of ${{rows.length}} rows`]; }})()"
    ));
    assert_eq!(found, json!([["wrong-checksum"], true]));
    let short = browser.evaluate("[...document.querySelectorAll('table')].filter(table => table.tBodies[0].rows.length <= 10).every(table => !table.closest('.scroll').previousElementSibling?.matches('.filter'))");
    assert_eq!(short, json!(true), "a short table has a filter");
    browser.expect_quiet();
}

#[test]
fn a_command_is_copied() {
    let Some(mut browser) = browser() else { return };
    browser.open(&written("complete", &constructed::complete()));
    // Without leave to write the clipboard, the command is selected.
    let is_copied = browser.evaluate(
        "(async () => { document.querySelectorAll('details').forEach(one => one.open = true);
           document.querySelector('button.copy').click();
           const status = document.querySelector('.copying [role=status]');
           while (status.textContent === '') await new Promise(requestAnimationFrame);
           return status.textContent === 'Copied.' || getSelection().toString() === document.querySelector('pre').textContent; })()",
    );
    assert_eq!(is_copied, json!(true));
    browser.expect_quiet();
}
