//! A method's text, read.

use std::borrow::Cow;
use std::str::FromStr;

use super::access_methods::{self, AccessMethod};
use super::options::BadValue;
use super::{Access, Method, MethodOption, Worker};
use MethodOption::{
    Buffer, Direct, DirectBuffer, DontCache, HeapBuffer, Populate, PopulateRead, PopulateWrite, Random,
    Sequential, WillNeed,
};

/// Pairs that contradict each other or say the same thing twice, with why.
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

/// Why a text names no method; each message says what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// Nothing written.
    #[error("a method is missing; the methods are {}", words(&Worker::Native))]
    Empty,
    /// No name of a worker.
    #[error(
        "'{worker}' in '{text}' is no name of a worker; the workers are native, jvm, go, python and those named by \
         --worker, in small letters, digits and hyphens"
    )]
    UnknownWorker {
        /// What was typed.
        text: String,
        /// The part before the slash.
        worker: String,
    },
    /// An access that does not exist.
    #[error("unknown method '{name}'; the methods{} are {}", of(.worker), words(.worker))]
    UnknownAccess {
        /// The word that names no access.
        name: String,
        /// Whose it would be.
        worker: Worker,
    },
    /// No text of a method of the user's own worker.
    #[error("'{text}' is no method; after the slash come small letters, digits and any of - : + = . _")]
    NoWord {
        /// What was typed.
        text: String,
    },
    /// One of several options is missing.
    #[error("'{text}' is not whole; write {choices}")]
    Incomplete {
        /// What was typed.
        text: String,
        /// What would be.
        choices: String,
    },
    /// An option that the access does not take.
    #[error("'{access}' takes no option '{option}'; it takes {accepted}")]
    UnknownOption {
        /// The access.
        access: &'static str,
        /// The word that names no option of it.
        option: String,
        /// Those that do.
        accepted: String,
    },
    /// A value that is missing or out of bounds.
    #[error("invalid option '{option}': {}expected {expected}", reason.as_ref().map(|reason| format!("{reason}; ")).unwrap_or_default())]
    Value {
        /// What was typed.
        option: String,
        /// What is wrong with the value, where that is known.
        reason: Option<String>,
        /// What would be accepted.
        expected: String,
    },
    /// An option given twice.
    #[error("'{option}' stands twice in '{text}'")]
    Repeated {
        /// What was typed.
        text: String,
        /// The repeated option.
        option: &'static str,
    },
    /// Two options that do not go together.
    #[error("'{first}' and '{second}' do not go together in '{text}': {reason}")]
    Conflict {
        /// What was typed.
        text: String,
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        reason: &'static str,
    },
}

/// The words of a worker, to be shown.
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

/// A method of a worker whose words are known.
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
        let choices: Vec<String> = way.one_of.iter().map(|option| format!("{text}:{option}")).collect();
        return Err(MethodError::Incomplete { text: text.to_string(), choices: choices.join(" or ") });
    }
    for default in &way.defaults {
        if !options.iter().any(|option| option.name() == default.name()) {
            options.push(*default);
        }
    }
    Ok(Method { worker, word: Cow::Borrowed(way.word), access: way.access, options })
}

/// A method of the user's own worker. What has the text of one of pagewise's own is held to what that means.
fn of_users_own(worker: Worker, text: &str, spec: &str) -> Result<Method, MethodError> {
    let is_of_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_allowed = |byte: u8| is_of_word(byte) || b"-:+=._".contains(&byte) || byte.is_ascii_uppercase();
    if !spec.bytes().next().is_some_and(is_of_word) || !spec.bytes().all(is_allowed) {
        return Err(MethodError::NoWord { text: text.to_string() });
    }
    let known = of_shipped(Worker::Native, spec, spec).ok().map(|mut known| {
        // A buffer that was not written is the worker's own business.
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
