//! Threads: the call that each is in, and the times that it was off its CPU.

use std::collections::HashMap;

use pagewise_model::watched::Call;

use pagewise_model::inspection::{By, FileWait, InspectedThread};

/// A thread being watched.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) process: u32,
    pub(super) name: String,
    began_ns: u64,
    ended_ns: Option<u64>,
    in_call: Option<InCall>,
    left: Option<Left>,
    /// Times that it was blocked since its last call, return or fault.
    blocks: Option<Blocks>,
    waits: HashMap<(usize, By), u64>,
    blocked_ns: u64,
    preempted_ns: u64,
}

/// A call that a thread is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct InCall {
    pub(super) call: Call,
    /// When it was made.
    pub(super) at_ns: u64,
    /// Time that it was blocked in it.
    pub(super) blocked_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    at_ns: u64,
    preempted: bool,
    instruction: Option<u64>,
}

/// Times that a thread was blocked, one after the other.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    last_ns: u64,
    /// The instruction of the last one.
    instruction: Option<u64>,
    /// All of them at this instruction, with none at another one between.
    at_instruction_ns: u64,
}

impl Thread {
    pub(super) fn new(process: u32, name: String, time_ns: u64) -> Self {
        Self {
            process,
            name,
            began_ns: time_ns,
            ended_ns: None,
            in_call: None,
            left: None,
            blocks: None,
            waits: HashMap::new(),
            blocked_ns: 0,
            preempted_ns: 0,
        }
    }

    pub(super) fn left(&mut self, at_ns: u64, preempted: bool, instruction: Option<u64>) {
        self.left = Some(Left { at_ns, preempted, instruction });
    }

    pub(super) fn resumed(&mut self, time_ns: u64) {
        let Some(left) = self.left.take() else { return };
        let off_ns = time_ns.saturating_sub(left.at_ns);
        if left.preempted {
            self.preempted_ns += off_ns;
            return;
        }
        self.blocked_ns += off_ns;
        let before = self.blocks.filter(|blocks| blocks.instruction == left.instruction);
        self.blocks = Some(Blocks {
            last_ns: off_ns,
            instruction: left.instruction,
            at_instruction_ns: off_ns + before.map_or(0, |blocks| blocks.at_instruction_ns),
        });
        if let Some(call) = &mut self.in_call {
            call.blocked_ns += off_ns;
        }
    }

    pub(super) fn called(&mut self, call: Call, at_ns: u64) {
        self.blocks = None;
        self.in_call = Some(InCall { call, at_ns, blocked_ns: 0 });
    }

    /// The call that it was in.
    pub(super) fn returned(&mut self) -> Option<InCall> {
        self.blocks = None;
        self.in_call.take()
    }

    /// The call that it is in.
    pub(super) fn call(&self) -> Option<Call> {
        self.in_call.map(|call| call.call)
    }

    /// A page fault is over; the time that it waited. The thread was blocked in it if it was so at
    /// the instruction that faulted: in a call it would have been at the one behind the call. Where
    /// no instruction is known, a major fault waited for the last time, and nothing is known of a
    /// minor one. In a call the fault's time is not the call's.
    pub(super) fn faulted(&mut self, major: bool, instruction: Option<u64>) -> u64 {
        let waited_ns = self.blocks.take().map_or(0, |blocks| match (instruction, blocks.instruction) {
            (Some(faulted), Some(blocked)) if faulted == blocked => blocks.at_instruction_ns,
            (Some(_), Some(_)) => 0,
            _ if major => blocks.last_ns,
            _ => 0,
        });
        if let Some(call) = &mut self.in_call {
            call.blocked_ns = call.blocked_ns.saturating_sub(waited_ns);
        }
        waited_ns
    }

    /// A wait for a file.
    pub(super) fn waited(&mut self, file: usize, by: By, waited_ns: u64) {
        if waited_ns > 0 {
            *self.waits.entry((file, by)).or_default() += waited_ns;
        }
    }

    pub(super) fn ended(&mut self, time_ns: u64) {
        self.ended_ns = Some(time_ns);
    }

    /// Waits until now; files by their position.
    pub(super) fn inspected(&self, number: u32, now_ns: u64, positions: &[usize]) -> InspectedThread {
        let mut waits: Vec<FileWait> = self
            .waits
            .iter()
            .map(|((file, by), waited_ns)| FileWait {
                file: positions[*file],
                by: *by,
                waited_ns: *waited_ns,
            })
            .collect();
        waits.sort_by_key(|wait| (std::cmp::Reverse(wait.waited_ns), wait.file, wait.by));
        let waited_ns: u64 = waits.iter().map(|wait| wait.waited_ns).sum();
        // A thread that is blocked at the end has been so since it left.
        let still_ns = self.left.filter(|left| !left.preempted && self.ended_ns.is_none());
        let still_ns = still_ns.map_or(0, |left| now_ns.saturating_sub(left.at_ns));
        InspectedThread {
            process: self.process,
            thread: number,
            name: self.name.clone(),
            watched_ns: self.ended_ns.unwrap_or(now_ns).saturating_sub(self.began_ns),
            waits,
            blocked_elsewhere_ns: (self.blocked_ns + still_ns).saturating_sub(waited_ns),
            preempted_ns: self.preempted_ns,
        }
    }
}
