//! Sentences about the replay of a trace: whether it stands for its program, and what another
//! method could bring to that.

use pagewise_analysis::Judged;
use pagewise_analysis::judge::gain::{Gain, UnknownGain};
use pagewise_analysis::judge::self_replay::{SLACK_BYTES, SelfReplay, Unproven, WITHIN, spread};
use pagewise_model::format::{bytes, difference, percent_up, time};
use pagewise_model::{Bytes, CacheState};

use super::reasons;

/// The proof that the trace stands for its program, or does not.
pub(crate) fn proof(replay: &SelfReplay) -> String {
    if let Some(reason) = replay.unknown {
        let failed = replay.failed.as_ref().filter(|_| reason == Unproven::NoValidReplay);
        let failed = failed.map_or_else(String::new, |failure| format!(": {}", reasons::failed(failure)));
        return format!("{}{failed}", not_validated(reason, &replay.method));
    }
    let figures = figures(replay);
    match replay.stands {
        true => format!(
            "the trace stands for the program: {figures}{}. It holds no read that the program answered from memory of its own{}",
            beginning(replay),
            unassigned(replay)
        ),
        false => {
            let beginning = beginning(replay);
            format!(
                "the trace does not stand for the program, so no other method is shown: {figures}{beginning}"
            )
        }
    }
}

/// The reason that it is not known whether a trace stands for its program, with what follows.
pub fn not_validated(reason: Unproven, method: &str) -> String {
    let reason = unknown(reason, method);
    format!("the replay could not be validated, so no other method is shown: {reason}")
}

fn unknown(reason: Unproven, method: &str) -> String {
    match reason {
        Unproven::NotReplayed => {
            format!("its own method {method} was not replayed; add it to --methods")
        }
        Unproven::InMemory => {
            "the file may have been cached during the recording, or another part of it: record again with --cold or --as-is and the name of \
             the file"
                .to_string()
        }
        Unproven::Cached => {
            "the program found nearly all that it read in the page cache, so bytes of the device say nothing of its reads: record again \
             with --cold and the name of the file, and replay it with --cache cold,warm"
                .to_string()
        }
        Unproven::OtherLimit { recorded_bytes, replayed_bytes } => format!(
            "the program was recorded {}, and its trace replayed {}; record it with that limit",
            under(recorded_bytes),
            under(replayed_bytes)
        ),
        Unproven::Windows => {
            "windows keep the kernel from mapping pages around a fault, from which it concludes how far to read ahead for mmap; \
             pagewise advise --windows runs the program without them, too"
                .to_string()
        }
        Unproven::HiddenBytes => {
            "a file has holes or is compressed, so bytes from the device say nothing of the program's reads".to_string()
        }
        Unproven::NotSeen => "how much the program read from the device was not seen".to_string(),
        Unproven::NoValidReplay => format!("there is no valid replay by its own method {method}"),
    }
}

fn under(limit: Option<Bytes>) -> String {
    limit.map_or_else(|| "without a memory limit".to_string(), |limit| format!("with {limit} of memory"))
}

/// The part of the file that both found in the page cache.
fn beginning(replay: &SelfReplay) -> String {
    let cached = replay.cached_bytes.filter(|_| replay.cache == Some(CacheState::Recorded));
    cached.map_or(String::new(), |cached| {
        format!("; both began with {} of the file in the page cache", bytes(cached))
    })
}

/// The reads that are not in the trace, since nobody saw of what files they are.
fn unassigned(replay: &SelfReplay) -> String {
    match replay.unassigned_bytes {
        0 => String::new(),
        lost => format!(", nor {} that it moved by descriptors closed too soon to be seen", bytes(lost)),
    }
}

/// The bytes that both read.
fn figures(replay: &SelfReplay) -> String {
    let program = replay.program_bytes.unwrap_or_default();
    let (of_replay, of_program) = (bytes(replay.replayed_bytes.unwrap_or_default()), bytes(program));
    // Of next to nothing, a share is nonsense.
    let percent = replay.difference.filter(|_| program as f64 > SLACK_BYTES);
    let percent = percent.map(|share| format!("{} %", difference(share * 100.0)));
    let own = format!("its replay by {}, the program's own method,", replay.method);
    match (replay.program_runs_bytes.len(), percent) {
        (1, Some(percent)) => format!(
            "{own} differs by {percent} from the one recording: it read {of_replay} from the device, and the program {of_program}"
        ),
        (_, percent) => {
            let percent = percent.map_or(String::new(), |percent| format!(" ({percent})"));
            let measured = measured(&replay.program_runs_bytes);
            format!(
                "{own} read {of_replay} from the device, and the program, {measured}, {of_program}{percent}"
            )
        }
    }
}

/// The runs of the program, and how far they are apart if that is more than a replay may be.
fn measured(program_runs: &[u64]) -> String {
    if program_runs.len() < 2 {
        return "measured once".to_string();
    }
    let (least, most) = spread(program_runs);
    let apart = (most - least) as f64 > (least as f64 * WITHIN).max(SLACK_BYTES);
    let spread = if apart { format!(" ({} to {})", bytes(least), bytes(most)) } else { String::new() };
    format!("measured {} times{spread}", program_runs.len())
}

/// The part of the program's time that another method could save.
pub(crate) fn gain(gain: &Gain) -> String {
    let when = match gain.program_runs {
        _ if gain.is_unwatched => "without a watch",
        0 => "while it was recorded",
        _ => "between the rounds of the replay",
    };
    let found = match (gain.unknown, gain.at_most) {
        (Some(UnknownGain::SeveralThreads), _) => {
            "its reads ran in several threads at once, so which part of its time they were, and what the whole program gains, is not known"
                .to_string()
        }
        (Some(UnknownGain::LongerThanInProgram), _) => {
            "they took longer than in the program, so what that gains is not known".to_string()
        }
        (_, None) => "these rounds do not decide what the whole program gains".to_string(),
        (_, Some(0.0)) => "no method of these makes it shorter".to_string(),
        (_, Some(share)) => {
            format!(
                "the quickest method makes the whole program at most {} shorter by its reads alone",
                percent_up(share)
            )
        }
    };
    let beyond = gain.bound.as_ref().zip(gain.bound_ns).map_or(String::new(), |(method, total_ns)| {
        format!("; if no read depended on the one before it, {method} would take {}", time(total_ns))
    });
    let (reads, program) = (time(gain.reads_ns), time(gain.program_ns));
    format!(
        "its reads by {} took at most {reads}, and the program {program} {when}: {found}{beyond}",
        gain.method
    )
}

/// Name of a method, with a mark if it is that of the program for which its replay stands.
pub(crate) fn named(judged: &Judged, method: &str) -> String {
    let stands = judged.self_replay.as_ref().filter(|replay| replay.stands);
    match stands.is_some_and(|replay| replay.method == method) {
        true => format!("{method} (the program)"),
        false => method.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pagewise_analysis::judge::reasons::MainFailure;
    use pagewise_model::FailureKind;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The replay of a program that read so many MiB in each of its runs; the replay read 64.
    fn replayed(program_mib: &[u64], stands: bool) -> SelfReplay {
        let program = program_mib[program_mib.len() / 2] * MIB;
        SelfReplay {
            method: "pread".into(),
            cache: Some(CacheState::Cold),
            cached_bytes: Some(Bytes(0)),
            program_bytes: Some(program),
            program_runs_bytes: program_mib.iter().map(|mib| mib * MIB).collect(),
            replayed_bytes: Some(64 * MIB),
            unassigned_bytes: 0,
            difference: Some((64 * MIB) as f64 / (program as f64).max(1.0) - 1.0),
            stands,
            unknown: None,
            failed: None,
        }
    }

    #[test]
    fn a_proof_has_both_figures() {
        assert_eq!(
            proof(&replayed(&[128], false)),
            "the trace does not stand for the program, so no other method is shown: its replay by pread, the program's own \
             method, differs by -50.0 % from the one recording: it read 64 MiB from the device, and the program 128 MiB"
        );
        let several = proof(&replayed(&[64, 64, 128], true));
        assert_eq!(
            several,
            "the trace stands for the program: its replay by pread, the program's own method, read 64 MiB from the device, and \
             the program, measured 3 times (64 MiB to 128 MiB), 64 MiB (0 %). It holds no read that the program answered from \
             memory of its own"
        );
        let unseen = proof(&SelfReplay { unassigned_bytes: 3 * MIB, ..replayed(&[64], true) });
        assert!(
            unseen.ends_with(", nor 3 MiB that it moved by descriptors closed too soon to be seen"),
            "{unseen}"
        );
        let cached = SelfReplay {
            cache: Some(CacheState::Recorded),
            cached_bytes: Some(Bytes::mib(9)),
            ..replayed(&[128], false)
        };
        let cached = proof(&cached);
        assert!(cached.ends_with("128 MiB; both began with 9 MiB of the file in the page cache"), "{cached}");
        // Of next to nothing no share is named.
        let nothing = proof(&replayed(&[0], false));
        assert!(nothing.contains("the program, measured once, 0 B") && !nothing.contains('%'), "{nothing}");
    }

    #[test]
    fn what_is_not_known_has_its_reason() {
        let sentence = |reason| proof(&SelfReplay { unknown: Some(reason), ..replayed(&[64], false) });
        let reasons = [
            (Unproven::NotReplayed, "its own method pread was not replayed; add it to --methods"),
            (Unproven::InMemory, "or another part of it: record again with --cold or --as-is and the name"),
            (Unproven::Cached, "bytes of the device say nothing of its reads: record again with --cold"),
            (
                Unproven::OtherLimit { recorded_bytes: None, replayed_bytes: Some(Bytes::mib(64)) },
                "recorded without a memory limit, and its trace replayed with 64MiB of memory; record it with that limit",
            ),
            (Unproven::Windows, "pagewise advise --windows runs the program without them, too"),
            (
                Unproven::HiddenBytes,
                "a file has holes or is compressed, so bytes from the device say nothing of the program's reads",
            ),
            (Unproven::NotSeen, "how much the program read from the device was not seen"),
            (Unproven::NoValidReplay, "there is no valid replay by its own method pread"),
        ];
        for (reason, part) in reasons {
            let sentence = sentence(reason);
            let beginning = "the replay could not be validated, so no other method is shown: ";
            assert!(sentence.starts_with(beginning) && sentence.contains(part), "{sentence}");
        }
        let failure =
            MainFailure { kind: FailureKind::WrongBytes, detail: "1 of 64 differ".into(), stderr_tail: None };
        let failed = proof(&SelfReplay {
            unknown: Some(Unproven::NoValidReplay),
            failed: Some(failure),
            ..replayed(&[64], false)
        });
        assert!(failed.ends_with("by its own method pread: wrong-bytes: 1 of 64 differ"), "{failed}");
    }

    #[test]
    fn a_gain_comes_with_the_times_that_it_follows_from() {
        let known = Gain {
            method: "pread".into(),
            reads_ns: 900_000_000,
            program_ns: 3_600_000_000,
            is_unwatched: false,
            program_runs: 0,
            quickest: "pread:direct".into(),
            at_most: Some(0.084),
            unknown: None,
            bound: Some("uring:direct+depth=32".into()),
            bound_ns: Some(300_000_000),
        };
        assert_eq!(
            gain(&known),
            "its reads by pread took at most 900 ms, and the program 3.6 s while it was recorded: the quickest method makes the \
             whole program at most 9 % shorter by its reads alone; if no read depended on the one before it, uring:direct+depth=32 would take 300 ms"
        );
        let sentence = |at_most, unknown| {
            gain(&Gain { at_most, unknown, bound: None, bound_ns: None, program_runs: 2, ..known.clone() })
        };
        let none = sentence(Some(0.0), None);
        assert!(
            none.ends_with("3.6 s between the rounds of the replay: no method of these makes it shorter"),
            "{none}"
        );
        let unwatched = gain(&Gain { is_unwatched: true, program_runs: 2, ..known.clone() });
        assert!(unwatched.contains(", and the program 3.6 s without a watch: "), "{unwatched}");
        for (reason, part) in [
            (
                UnknownGain::SeveralThreads,
                "its reads ran in several threads at once, so which part of its time",
            ),
            (UnknownGain::LongerThanInProgram, "they took longer than in the program, so what that gains"),
            (UnknownGain::Undecided, "these rounds do not decide what the whole program gains"),
        ] {
            let sentence = sentence(None, Some(reason));
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
