//! Machines that measured at the same time, as a document.

use pagewise_model::date;
use pagewise_model::format::{MISSING, counted, grouped, listed, mebibytes, percent, time};
use pagewise_report::document::{Block, Document};
use pagewise_report::text_table::{TextCell, TextTable};

use crate::judgement::Together;
use crate::judgement::together::{MachineTogether, MeasuredBeside, MethodTogether, SituationTogether};

/// Machines that have a line and a column each.
const MOST_MACHINES: usize = 6;
/// Other methods that are named of those measured meanwhile.
const MOST_BESIDE: usize = 3;

/// Machines at the same time.
pub fn together_document(together: &Together) -> Document {
    let shared = together.until_unix_ns - together.from_unix_ns;
    let head = format!(
        "{} measured at the same time for {}, from {}; they began {} apart.",
        counted(together.machines.len() as u64, "machine"),
        time(shared),
        date::utc(together.from_unix_ns / 1_000_000_000),
        time(together.began_apart_ns),
    );
    let mut head = vec![Block::paragraph(head)];
    let machines = together.machines.iter();
    if together.machines.len() <= MOST_MACHINES {
        head.push(Block::facts(machines.map(|one| (one.machine.clone(), of_machine(one)))));
    }
    if together.has_one_clock {
        head.push(Block::remark("They have one kernel, and so one clock."));
    }
    head.extend(together.warnings.iter().cloned().map(Block::Warning));
    Document {
        head,
        conclusion: conclusion(together),
        body: together.situations.iter().flat_map(|one| of_situation(one, &together.machines)).collect(),
    }
}

/// `prepared in time, measured for 28.4 s; clock: in step, off by 3 ms at most`.
fn of_machine(machine: &MachineTogether) -> String {
    let measured = time(machine.ended_unix_ns.saturating_sub(machine.began_unix_ns));
    let late = match machine.late_ns {
        0 => "in time".to_string(),
        late_ns => format!("{} late", time(late_ns)),
    };
    let clock = match (machine.is_synchronised, machine.clock_error_ns) {
        (Some(true), Some(error_ns)) => format!("in step, off by {} at most", time(error_ns)),
        (Some(false), _) => "not in step with a reference".to_string(),
        _ => "unknown".to_string(),
    };
    format!("prepared {late}, measured for {measured}; clock: {clock}")
}

fn conclusion(together: &Together) -> Vec<Block> {
    let methods: Vec<&MethodTogether> = together.situations.iter().flat_map(|one| &one.methods).collect();
    let summed = methods.iter().filter(|one| one.sum_bytes_per_second.is_some()).count();
    let all = counted(methods.len() as u64, "method");
    let of_all = methods.iter().flat_map(|one| &one.machines);
    let (counted_in, left_out) =
        of_all.fold((0, 0), |(samples, left_out), one| (samples + one.samples, left_out + one.left_out));
    let advice = match together.has_one_seed {
        _ if left_out > counted_in => {
            Some("Most samples are left out: pagewise report says why, run by run.")
        }
        false => Some(
            "Each run drew an order of its own: with one --seed for all they measure the same more often.",
        ),
        true if summed < methods.len() => {
            Some("Longer samples (--sample) are at once for more of their time.")
        }
        true => None,
    };
    let columns = "A sum is of the time at once, and a machine's column the median of its samples.";
    let columns = (summed > 0).then_some(columns);
    let verb = if summed == 1 { "has" } else { "have" };
    let summed = Block::paragraph(format!("{summed} of {all} {verb} a sum of the rates of all machines."));
    std::iter::once(summed).chain(columns.into_iter().chain(advice).map(Block::remark)).collect()
}

fn of_situation(situation: &SituationTogether, machines: &[MachineTogether]) -> Vec<Block> {
    let label = &situation.label;
    let beside = situation.methods.iter().filter_map(|one| meanwhile(one, machines)).collect();
    vec![
        Block::heading(3, label.as_str()),
        Block::Table(table(situation, machines), label.clone()),
        Block::List(beside),
    ]
}

/// A row for each method: the sum and its time, then each machine, or the least and the most.
fn table(situation: &SituationTogether, machines: &[MachineTogether]) -> TextTable {
    let has_columns = machines.len() <= MOST_MACHINES;
    let row = |method: &MethodTogether| {
        let mut rates: Vec<(f64, &str)> = method
            .machines
            .iter()
            .zip(machines)
            .filter_map(|(rate, machine)| Some((rate.bytes_per_second?, machine.machine.as_str())))
            .collect();
        let mut cells = vec![
            TextCell::from(&method.method),
            TextCell::number(method.sum_bytes_per_second, mebibytes),
            TextCell::number(Some(method.summed_ns).filter(|ns| *ns > 0), time),
        ];
        if has_columns {
            let rates = method.machines.iter();
            cells.extend(rates.map(|rate| TextCell::number(rate.bytes_per_second, mebibytes)));
        } else {
            rates.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let end = |end: Option<&(f64, &str)>| match end {
                Some((rate, machine)) => TextCell::of(format!("{} ({machine})", mebibytes(*rate)), *rate),
                None => TextCell::from(MISSING),
            };
            cells.extend([end(rates.first()), end(rates.last())]);
        }
        let samples = method.machines.iter().map(|rate| rate.samples as u64).sum::<u64>();
        let left_out = method.machines.iter().map(|rate| rate.left_out as u64).sum::<u64>();
        cells.extend([samples, left_out].map(|count| TextCell::number(Some(count), grouped)));
        cells
    };
    let of_machines: Vec<String> = match has_columns {
        true => machines.iter().map(|one| one.machine.clone()).collect(),
        false => vec!["least".to_string(), "most".to_string()],
    };
    let headings = ["method", "sum, MiB/s", "at once"].map(str::to_string).into_iter().chain(of_machines);
    let headings = headings.chain(["samples", "left out"].map(str::to_string));
    TextTable {
        columns: headings.map(Into::into).collect(),
        rows: situation.methods.iter().map(row).collect(),
    }
}

/// `While one machine measured pread, another measured the same 61 % of the time, mmap 20 % and
/// nothing 19 %.`
fn meanwhile(method: &MethodTogether, machines: &[MachineTogether]) -> Option<String> {
    let name = &method.method;
    let share = |is: &dyn Fn(&MeasuredBeside) -> bool| -> f64 {
        method.beside.iter().filter(|one| is(one)).fold(0.0, |sum, one| sum + one.share)
    };
    let is_here = |one: &MeasuredBeside| one.label.is_none() && one.method.is_some();
    let is_own = |one: &MeasuredBeside| is_here(one) && one.method.as_ref() == Some(name);
    let others = || method.beside.iter().filter(|one| is_here(one) && !is_own(one));
    let mut parts = vec![format!("the same {} of the time", percent(share(&is_own)))];
    parts.extend(others().take(MOST_BESIDE).filter_map(|one| {
        let other = one.method.as_ref()?;
        Some(format!("{other} {}", percent(one.share)))
    }));
    let rest = [
        ("other methods", others().skip(MOST_BESIDE).fold(0.0, |sum, one| sum + one.share)),
        ("methods under other conditions", share(&|one| one.label.is_some())),
        ("nothing", share(&|one| one.method.is_none())),
    ];
    let rest = rest.into_iter().filter(|(_, share)| *share > 0.0);
    parts.extend(rest.map(|(other, share)| format!("{other} {}", percent(share))));
    let without: Vec<&str> = method
        .machines
        .iter()
        .zip(machines)
        .filter_map(|(rate, machine)| (rate.samples == 0).then_some(machine.machine.as_str()))
        .collect();
    let no_sum = match method.at_once_ns {
        _ if method.sum_bytes_per_second.is_some() => String::new(),
        _ if !without.is_empty() => format!(" No sample of it counts on {}.", listed(&without)),
        0 => " All of them never measured it at once.".to_string(),
        ns => format!(
            " All of them measured it at once for {}, but never for half of a valid sample of each.",
            time(ns)
        ),
    };
    (!method.beside.is_empty())
        .then(|| format!("While one machine measured {name}, another measured {}.{no_sum}", listed(&parts)))
}
