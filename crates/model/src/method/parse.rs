//! Parsing of a method's text.

use std::borrow::Cow;
use std::str::FromStr;

use super::access_methods::{self, AccessMethod};
use super::names;
use super::options::BadValue;
use super::{Access, Method, MethodOption, Worker};
use MethodOption::{
    Buffer, Direct, DirectBuffer, DontCache, HeapBuffer, Populate, PopulateRead, PopulateWrite, Random,
    Sequential, WillNeed,
};

/// Pairs of options that contradict or repeat each other, with the reason.
const CONFLICTS: &[(MethodOption, MethodOption, &str)] = &[
    (Random, Sequential, "the second advice replaces the first"),
    (Populate, PopulateRead, "both fill the page tables"),
    (Populate, PopulateWrite, "both fill the page tables"),
    (PopulateRead, PopulateWrite, "both fill the page tables"),
    (Direct, DontCache, "O_DIRECT does not use the page cache"),
    (Direct, Random, "O_DIRECT does not use readahead"),
    (Direct, Sequential, "O_DIRECT does not use readahead"),
    (Direct, WillNeed, "O_DIRECT does not use the page cache"),
    (DirectBuffer, HeapBuffer, "the bytes go to one of them"),
];

/// Reason that a text is not a method; each message says what is accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// The text is empty.
    #[error("missing method: write one of {}", words(&Worker::Native))]
    Empty,
    /// The part before the slash is not a worker's name.
    #[error(
        "invalid worker name '{worker}' in '{text}': write native, jvm, go, python or a name given by --worker, in small letters, digits and hyphens"
    )]
    UnknownWorker {
        /// The text as typed.
        text: String,
        /// The part before the slash.
        worker: String,
    },
    /// The access does not exist.
    #[error("unknown method '{name}': the methods{} are {}{}", of(.worker), words(.worker), names::of_unknown(.worker, .name))]
    UnknownAccess {
        /// The unknown word.
        name: String,
        /// The worker it was looked up in.
        worker: Worker,
    },
    /// The text is not a method of a user's worker.
    #[error("invalid method '{text}': write small letters, digits and any of - : + = . _ after the slash")]
    NoWord {
        /// The text as typed.
        text: String,
    },
    /// One of several options is required.
    #[error("incomplete method '{text}': write {choices}")]
    Incomplete {
        /// The text as typed.
        text: String,
        /// The options to choose from.
        choices: String,
    },
    /// The access does not accept the option.
    #[error("unknown option '{option}' of '{access}': it takes {accepted}{}", names::of_unknown_option(.option, .accepted))]
    UnknownOption {
        /// The access.
        access: &'static str,
        /// The unknown word.
        option: String,
        /// The accepted options.
        accepted: String,
    },
    /// The value is missing or out of bounds.
    #[error("invalid option '{option}': {}expected {expected}", reason.as_ref().map(|reason| format!("{reason}; ")).unwrap_or_default())]
    Value {
        /// The option as typed.
        option: String,
        /// The fault, if known.
        reason: Option<String>,
        /// The expected value.
        expected: String,
    },
    /// An option is given twice.
    #[error("repeated option '{option}' in '{text}': write it once")]
    Repeated {
        /// The text as typed.
        text: String,
        /// The repeated option.
        option: &'static str,
    },
    /// Two options exclude each other.
    #[error("conflicting options '{first}' and '{second}' in '{text}': {reason}")]
    Conflict {
        /// The text as typed.
        text: String,
        /// The first option.
        first: &'static str,
        /// The second option.
        second: &'static str,
        /// The reason.
        reason: &'static str,
    },
}

/// The words of a worker, for a message.
fn words(worker: &Worker) -> String {
    access_methods::of(worker).iter().map(|way| way.word).collect::<Vec<_>>().join(", ")
}

fn of(worker: &Worker) -> String {
    if *worker == Worker::Native { String::new() } else { format!(" of {worker}") }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let text = text.trim();
        let (worker, spec) = match text.split_once('/') {
            None => (Worker::Native, text),
            Some((name, spec)) => {
                let unknown =
                    || MethodError::UnknownWorker { text: text.to_string(), worker: name.to_string() };
                (Worker::of_name(name).ok_or_else(unknown)?, spec)
            }
        };
        if spec.is_empty() {
            return Err(MethodError::Empty);
        }
        match worker {
            Worker::Other(_) => of_users_own(worker, text, spec),
            worker => of_shipped(worker, text, spec),
        }
    }
}

/// Parse a method of a worker whose words are known.
fn of_shipped(worker: Worker, text: &str, spec: &str) -> Result<Method, MethodError> {
    let (name, written) = match spec.split_once(':') {
        Some((name, written)) => (name, Some(written)),
        None => (spec, None),
    };
    let Some(way) = access_methods::of(&worker).iter().find(|way| way.word == name) else {
        return Err(MethodError::UnknownAccess { name: name.to_string(), worker });
    };
    let mut options: Vec<MethodOption> = Vec::new();
    for word in written.into_iter().flat_map(|written| written.split('+')) {
        let option = parse_option(way, word)?;
        if options.iter().any(|earlier| earlier.name() == option.name()) {
            return Err(MethodError::Repeated { text: text.to_string(), option: option.name() });
        }
        options.push(option);
    }
    for (first, second, reason) in CONFLICTS {
        if options.contains(first) && options.contains(second) {
            let (first, second) = (first.name(), second.name());
            return Err(MethodError::Conflict { text: text.to_string(), first, second, reason });
        }
    }
    if !way.one_of.is_empty() && !way.one_of.iter().any(|option| options.contains(option)) {
        let joint = if options.is_empty() { ':' } else { '+' };
        let choices: Vec<String> = way.one_of.iter().map(|option| format!("{text}{joint}{option}")).collect();
        return Err(MethodError::Incomplete { text: text.to_string(), choices: choices.join(" or ") });
    }
    for default in &way.defaults {
        if !options.iter().any(|option| option.name() == default.name()) {
            options.push(*default);
        }
    }
    Ok(Method { worker, word: Cow::Borrowed(way.word), access: way.access, options })
}

/// Parse a method of a user's worker. A text that is also one of pagewise's own has the same
/// meaning.
fn of_users_own(worker: Worker, text: &str, spec: &str) -> Result<Method, MethodError> {
    let is_of_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_allowed = |byte: u8| is_of_word(byte) || b"-:+=._".contains(&byte) || byte.is_ascii_uppercase();
    if !spec.bytes().next().is_some_and(is_of_word) || !spec.bytes().all(is_allowed) {
        return Err(MethodError::NoWord { text: text.to_string() });
    }
    let known = of_shipped(Worker::Native, spec, spec).ok().map(|mut known| {
        // The default buffer size is up to the worker.
        known.options.retain(|option| !matches!(option, Buffer(_)) || spec.contains("buffer="));
        known
    });
    Ok(match known.filter(|known| known.spec() == spec) {
        Some(known) => Method { worker, ..known },
        None => Method {
            worker,
            word: Cow::Owned(spec.to_string()),
            access: Access::Unknown,
            options: Vec::new(),
        },
    })
}

fn parse_option(way: &AccessMethod, word: &str) -> Result<MethodOption, MethodError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let taken = way.options();
    let unknown = || MethodError::UnknownOption {
        access: way.word,
        option: word.to_string(),
        accepted: match taken.is_empty() {
            true => "none".to_string(),
            false => taken.iter().map(|option| option.usage()).collect::<Vec<_>>().join(", "),
        },
    };
    let mut named = taken.iter().filter(|option| option.name() == name);
    // `prefetch` and `prefetch=N` have one name.
    let has_value = |option: &&MethodOption| value.is_some() == option.usage().contains('=');
    let known = named.clone().find(has_value).or_else(|| named.next()).ok_or_else(unknown)?;
    known.with_value(value).map_err(|bad| match bad {
        BadValue::TakesNone => unknown(),
        BadValue::Expected(reason, expected) => {
            MethodError::Value { option: word.to_string(), reason, expected }
        }
    })
}
