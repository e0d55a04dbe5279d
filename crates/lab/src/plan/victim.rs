//! `--victim`: the methods of a question are those of an actor, and compared by what they leave to
//! another program, which is measured.
//!
//! The roles are exchanged here and nowhere else: the plan is the victim's question, with an actor
//! beside it for each method.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use pagewise_model::{
    Actor, ActorFile, ActorOrder, Bytes, CacheState, Method, SAME_FILE, ScheduledRate, Sync, Workload,
};

use super::matrix::vary;
use super::{Axes, OrNone, Size, Threads};

/// Size of a victim's file under a memory limit, in thousandths of the cache: hot data that fit,
/// and do not fit together with what an actor brings in.
const USUAL_FILE: Size = Size::Times(750);

/// Size of the file that actor and victim both read: more than fits.
const USUAL_SHARED_FILE: Size = Size::Times(4000);

/// The program whose loss ranks the methods of an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    order: ActorOrder,
    method: Method,
    op_bytes: Bytes,
    rate: Option<ScheduledRate>,
    file: Option<VictimFile>,
}

/// The file of a victim.
#[derive(Clone, Debug, PartialEq, Eq)]
enum VictimFile {
    /// One that pagewise makes, of this size.
    Made(Size),
    /// The user's own, at this path.
    Own(PathBuf),
    /// That of the actors.
    Same,
}

impl FromStr for VictimFile {
    type Err = String;

    /// A path has a slash in it, and a size has none.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == SAME_FILE {
            return Ok(VictimFile::Same);
        }
        match text.contains('/') {
            true => Ok(VictimFile::Own(PathBuf::from(text))),
            false => text.parse().map(VictimFile::Made).map_err(|error: String| {
                format!("{error}; a file of your own needs a slash in its path, as in file=./{text}")
            }),
        }
    }
}

/// The text of an actor, but a rate may be left out, and its file may be a multiple of the cache or
/// the user's own.
impl FromStr for Victim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = |reason: String| format!("invalid victim '{text}': {reason}");
        let (files, mut parts): (Vec<&str>, Vec<&str>) =
            text.split(',').map(str::trim).partition(|part| part.starts_with("file="));
        // The rest of a path, which this grammar cannot hold.
        let rest = parts.iter().skip(1).find(|part| !part.contains('='));
        if let Some((path, rest)) = files.first().filter(|path| path.contains('/')).zip(rest) {
            return Err(invalid(format!(
                "a comma ends the path in '{path}', and '{rest}' follows it: name a file with a comma in its path by a link without one"
            )));
        }
        if !parts.iter().any(|part| part.starts_with("rate=")) {
            parts.push("rate=max");
        }
        let has_method =
            parts[0].split_once(':').is_some_and(|(order, _)| order.parse::<ActorOrder>().is_ok());
        if !has_method {
            return Err(invalid(
                "write read:METHOD, scan:METHOD or append:METHOD, as in read:pread,rate=20k".to_string(),
            ));
        }
        let paced = parts
            .iter()
            .find(|part| part.starts_with("size=") || part.starts_with("rate=") && **part != "rate=max");
        let paced = paced.map(|part| part.to_string());
        let actor = Actor::of_parts(parts).map_err(invalid)?;
        if let Some(part) = paced.filter(|_| actor.order == ActorOrder::Scan) {
            return Err(invalid(format!(
                "a scan goes through its file by the pieces of its method, as fast as it can: leave {part} out"
            )));
        }
        let file = match files[..] {
            [] => None,
            [file] => Some(file["file=".len()..].parse().map_err(invalid)?),
            [_, second, ..] => return Err(invalid(format!("'{second}' comes a second time"))),
        };
        if matches!(file, Some(VictimFile::Own(_) | VictimFile::Same)) && actor.is_writing() {
            let whose = if file == Some(VictimFile::Same) { "a file of both" } else { "your own file" };
            return Err(invalid(format!("{whose} is only read, and this victim writes")));
        }
        let Actor { order, method, op_bytes, rate, file: _ } = actor;
        Ok(Self { order, method, op_bytes, rate, file })
    }
}

/// A victim's question.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchanged {
    /// Name of the question.
    pub question: &'static str,
    /// Workload of the question.
    pub workload: Workload,
    /// Choices of the question.
    pub axes: Axes,
    /// The user's own file, if the victim reads one.
    pub own_files: Vec<PathBuf>,
}

impl Victim {
    /// True if it reads the file of the actors.
    pub fn reads_same_file(&self) -> bool {
        self.file == Some(VictimFile::Same)
    }

    /// The question of this victim beside each method that `question` was asked about. Methods,
    /// sizes and rates of `axes` become those of actors; all else is of the victim. `files` of the
    /// user are of both.
    pub fn exchanged(self, question: &str, mut axes: Axes, files: Vec<PathBuf>) -> Result<Exchanged> {
        ensure!(
            files.is_empty() || self.file == Some(VictimFile::Same),
            "your file is not that of the actors alone: write file=same in the victim if both read it, or name a directory instead of your file"
        );
        let beside = self.actors(question, &mut axes)?;
        let is_of_both = self.reads_same_file();
        let (question, workload) = match self.order {
            ActorOrder::Read => ("read", Workload::RandomRead),
            ActorOrder::Scan => ("scan", Workload::Scan),
            ActorOrder::Append => ("append", Workload::Append),
        };
        axes.beside = Some(beside);
        axes.methods = Some(vec![self.method]);
        axes.threads.get_or_insert(vec![Threads::Count(1)]);
        axes.rate = self.rate.map(|rate| vec![OrNone(Some(rate))]);
        let is_limited = axes.memory.iter().flatten().any(|limit| limit.0.is_some());
        let usual = Some(USUAL_FILE).filter(|_| is_limited && self.order != ActorOrder::Append);
        let (made, own_files) = match self.file {
            None => (usual.map(|size| vec![size]), Vec::new()),
            Some(VictimFile::Made(size)) => (Some(vec![size]), Vec::new()),
            Some(VictimFile::Own(path)) => (None, vec![path]),
            Some(VictimFile::Same) => {
                axes.span = axes.span.or(usual.map(|size| vec![size]));
                let usual = usual.filter(|_| files.is_empty()).map(|_| vec![USUAL_SHARED_FILE]);
                (axes.file_size.take().or(usual), files)
            }
        };
        axes.file_size = made;
        ensure!(
            axes.read_size.is_none() && axes.record_size.is_none(),
            "with --victim, --read-size is of an actor that reads and --record-size of one that appends: the size of the victim is in its text, as in size=4KiB"
        );
        ensure!(
            axes.sync.is_none(),
            "a victim that appends commits each record, and the others write nothing: leave --sync out"
        );
        match self.order {
            ActorOrder::Read => {
                axes.read_size = Some(vec![self.op_bytes]);
                axes.reads_per_op.get_or_insert(vec![1]);
                axes.cache.get_or_insert(vec![CacheState::Warm]);
            }
            // Actors bring in what both read.
            ActorOrder::Scan if is_of_both => {
                axes.cache.get_or_insert(vec![CacheState::Warm]);
            }
            ActorOrder::Scan => {}
            ActorOrder::Append => {
                axes.record_size = Some(vec![self.op_bytes]);
                axes.sync = Some(vec![Sync::Commit]);
            }
        }
        Ok(Exchanged { question, workload, axes, own_files })
    }

    /// No actor, and one for each method, size and rate.
    fn actors(&self, question: &str, axes: &mut Axes) -> Result<Vec<OrNone<Actor>>> {
        ensure!(axes.beside.is_none(), "--victim makes an actor of each method: leave --beside out");
        let (order, sizes, usual): (_, _, &[&str]) = match question {
            "read" => {
                (ActorOrder::Read, axes.read_size.take(), &["mmap", "mmap:random", "pread", "pread:direct"])
            }
            "scan" => (
                ActorOrder::Scan,
                axes.read_size.take(),
                &["mmap", "pread", "pread:noreuse", "pread:dontcache", "pread:direct"],
            ),
            "append" => (
                ActorOrder::Append,
                axes.record_size.take(),
                &["mmap", "pwrite", "pwrite:dontcache", "pwrite:direct+buffer=1MiB"],
            ),
            _ => bail!(
                "--victim ranks methods of read, scan and append: write pagewise scan --victim read:pread, or leave it out"
            ),
        };
        let usual = usual.iter().map(|method| method.parse().expect("the method is one"));
        // O_DIRECT needs a buffer of the size of a record.
        let is_usual_size = order != ActorOrder::Append || sizes.is_none();
        let usual = usual.filter(|method: &Method| is_usual_size || !method.is_direct());
        let methods: Vec<Method> = axes.methods.take().unwrap_or_else(|| usual.collect());
        let sizes = sizes.map_or(vec![None], |sizes| sizes.into_iter().map(Some).collect());
        let rates = axes.rate.take().unwrap_or(vec![OrNone(None)]);
        let files = match &axes.file_size {
            _ if self.reads_same_file() => vec![ActorFile::Same],
            None => vec![ActorFile::Own(None)],
            Some(sizes) => sizes.iter().map(|size| file_of_actor(*size)).collect::<Result<Vec<_>>>()?,
        };
        let file = ActorFile::Own(None);
        let of = |method| Actor { order, method, op_bytes: order.usual_operation(), rate: None, file };
        let mut all: Vec<Actor> = methods.into_iter().map(of).collect();
        all = vary(all, &sizes, |actor, size| actor.op_bytes = size.unwrap_or(actor.op_bytes))?;
        all = vary(all, &rates, |actor, rate| actor.rate = rate.0)?;
        all = vary(all, &files, |actor, file| actor.file = file)?;
        // As typed: what is no actor is refused with its reason.
        let actors = all.iter().map(|actor| actor.to_string().parse().map_err(anyhow::Error::msg));
        std::iter::once(Ok(OrNone(None))).chain(actors.map(|actor| Ok(OrNone(Some(actor?))))).collect()
    }
}

fn file_of_actor(size: Size) -> Result<ActorFile> {
    match size {
        Size::Exact(bytes) => Ok(ActorFile::Own(Some(bytes))),
        Size::Times(_) => bail!(
            "with --victim the file size is that of the actor's file: write it in bytes, or leave it out for four times the memory limit"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim(text: &str) -> Victim {
        text.parse().expect("a victim")
    }

    fn limited() -> Axes {
        Axes { memory: Some(vec!["128MiB".parse().expect("a limit")]), ..Axes::default() }
    }

    fn besides(axes: &Axes) -> Vec<String> {
        let actors = axes.beside.iter().flatten();
        actors.map(|one| one.0.as_ref().map_or("none".to_string(), Actor::to_string)).collect()
    }

    #[test]
    fn methods_sizes_and_rates_become_those_of_actors() {
        let typed = Axes {
            methods: Some(["pread", "pread:direct"].map(|method| method.parse().expect("a method")).to_vec()),
            rate: Some(vec![OrNone(ScheduledRate::new(400))]),
            file_size: Some(vec![Size::Exact(Bytes::gib(1))]),
            ..limited()
        };
        let Exchanged { question, workload, axes, own_files } = victim("read:mmap:random,rate=20k,size=4KiB")
            .exchanged("scan", typed, Vec::new())
            .expect("a question");
        assert_eq!((question, workload), ("read", Workload::RandomRead));
        assert_eq!(
            besides(&axes),
            ["none", "scan:pread,rate=400MiB/s,file=1GiB", "scan:pread:direct,rate=400MiB/s,file=1GiB"]
        );
        assert_eq!(axes.methods, Some(vec!["mmap:random".parse().expect("a method")]));
        assert_eq!(axes.rate, Some(vec![OrNone(ScheduledRate::new(20_000))]));
        assert_eq!(axes.read_size, Some(vec![Bytes::kib(4)]));
        assert_eq!((axes.file_size, axes.span, own_files), (Some(vec![USUAL_FILE]), None, vec![]));
    }

    #[test]
    fn a_file_of_ones_own_has_its_size() {
        let of_victim = victim("read:mmap:random,rate=20k,file=./index.bin");
        let Exchanged { axes, own_files, .. } =
            of_victim.exchanged("scan", limited(), Vec::new()).expect("a question");
        assert_eq!((own_files, axes.file_size), (vec![PathBuf::from("./index.bin")], None));
    }

    #[test]
    fn a_file_of_both_is_larger_than_what_the_victim_reads() {
        let of_both = || victim("read:pread,rate=20k,file=same");
        let of = |axes| of_both().exchanged("scan", axes, Vec::new()).expect("a question");
        let all = of(limited());
        assert_eq!((all.own_files, all.axes.file_size.clone()), (vec![], Some(vec![USUAL_SHARED_FILE])));
        assert!(besides(&all.axes).iter().skip(1).all(|actor| actor.ends_with(",file=same")));
        assert_eq!(all.axes.span, Some(vec![USUAL_FILE]));
        let size = Some(vec![Size::Exact(Bytes::gib(1))]);
        let typed = of(Axes { file_size: size.clone(), span: Some(vec![Size::Times(500)]), ..limited() });
        assert_eq!((typed.axes.file_size, typed.axes.span), (size, Some(vec![Size::Times(500)])));
        let free = of(Axes::default()).axes;
        assert_eq!((free.file_size, free.span), (None, None));
        let scanned = victim("scan:pread,file=same").exchanged("scan", Axes::default(), Vec::new());
        assert_eq!(scanned.expect("a question").axes.cache, Some(vec![CacheState::Warm]));
        let alone = victim("scan:pread").exchanged("scan", Axes::default(), Vec::new());
        assert_eq!(alone.expect("a question").axes.cache, None, "the states of the question");
        let files = vec![PathBuf::from("index.bin")];
        let own = of_both().exchanged("scan", limited(), files.clone()).expect("a question");
        assert_eq!((own.own_files, own.axes.file_size), (files.clone(), None));
        let error = victim("read:pread").exchanged("scan", limited(), files).expect_err("whose is it?");
        assert!(error.to_string().contains("write file=same in the victim"), "{error}");
    }

    #[test]
    fn a_log_is_a_victim_that_commits() {
        let of = |text: &str| victim(text).exchanged("read", limited(), Vec::new()).expect("a question");
        let Exchanged { question, axes, .. } = of("append:pwrite,rate=100,size=4KiB,file=16MiB");
        assert_eq!((question, axes.sync), ("append", Some(vec![Sync::Commit])));
        assert_eq!(axes.record_size, Some(vec![Bytes::kib(4)]));
        assert_eq!(axes.file_size, Some(vec![Size::Exact(Bytes::mib(16))]));
        assert_eq!(axes.beside.map(|all| all.len()), Some(5), "none and the usual methods");
        assert_eq!(of("scan:pread").question, "scan");
    }

    #[test]
    fn what_is_no_victim_is_refused_with_a_reason() {
        for (text, reason) in [
            ("pread", "write read:METHOD"),
            ("", "write read:METHOD"),
            ("file=1GiB", "write read:METHOD"),
            ("read:nothing", "nothing"),
            ("read:pread,rate=0", "rate '0'"),
            ("read:pread,file=0.5x,file=1GiB", "second time"),
            ("read:pread,file=x", "invalid multiple"),
            ("read:pread,file=index.bin", "as in file=./index.bin"),
            ("read:pread,file=./a,b.bin,rate=5k", "and 'b.bin' follows it: name a file with a comma"),
            ("read:pread,nothing,file=1GiB", "'nothing' is none of rate="),
            ("append:pwrite,file=/data/log", "only read"),
            ("append:pwrite,file=same", "a file of both is only read"),
            ("read:pread,span=1GiB", "none of rate="),
            ("scan:pread,rate=20", "leave rate=20 out"),
            ("scan:pread,rate=max,size=4KiB", "leave size=4KiB out"),
        ] {
            let error = text.parse::<Victim>().expect_err("no victim");
            assert!(error.starts_with("invalid victim '") && error.contains(reason), "{text}: {error}");
        }
        let refused = |question: &str, axes| {
            victim("read:pread").exchanged(question, axes, Vec::new()).expect_err("refused").to_string()
        };
        assert!(refused("fill", limited()).contains("read, scan and append"));
        let times = Axes { file_size: Some(vec![Size::Times(2000)]), ..limited() };
        assert!(refused("scan", times).contains("write it in bytes"));
        let sizes = Axes { read_size: Some(vec![Bytes::kib(4)]), ..limited() };
        assert!(refused("append", sizes).contains("the size of the victim is in its text"));
        let synced = Axes { sync: Some(vec![Sync::End]), ..limited() };
        assert!(refused("scan", synced).contains("leave --sync out"));
        let empty = Axes { read_size: Some(vec![Bytes(0)]), ..limited() };
        assert!(refused("scan", empty).contains("holds nothing"));
    }
}
