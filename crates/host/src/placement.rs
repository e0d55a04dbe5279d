//! Placement of workers and pages: CPUs, and NUMA nodes with their memory
//! (Documentation/ABI/stable/sysfs-devices-node).

use std::fs::File;
use std::io;
use std::path::Path;

use pagewise_model::{CpuList, Numa};
use pagewise_sys::{Advice, CpuMask, FileMapping, placement};

use crate::kernel_files::{self, kib_field};
use crate::mounted;

/// Maximum number of pages whose node is queried.
const SAMPLE_PAGES_MAX: usize = 4096;

/// Placement of worker and pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementPlan {
    /// The node whose CPUs the worker uses.
    pub worker_node: u32,
    /// The CPUs of that node.
    pub worker_cpus: CpuList,
    /// The node whose memory holds the pages.
    pub page_node: u32,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number.
    pub number: u32,
    /// CPUs that are online; some nodes have none.
    pub cpus: Vec<u32>,
    /// Memory; some have none.
    pub memory_bytes: u64,
    /// Distances of the online nodes from it, in the order of their numbers; its own is 10.
    pub distances: Vec<u32>,
}

/// The CPUs and nodes of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// CPUs that are online.
    pub cpus: Vec<u32>,
    /// Nodes that are online, ascending. One without distances if the kernel does not support
    /// nodes; none if /sys is missing.
    pub nodes: Vec<Node>,
}

impl Topology {
    /// Read /sys; without it, the CPUs listed in /proc/stat.
    pub fn read() -> Result<Self, String> {
        if mounted::sys_missing().is_some() {
            let stat = kernel_files::text("/proc/stat").unwrap_or_default();
            let cpus = counted_cpus(&stat);
            let none = "neither /sys nor /proc lists the CPUs".to_string();
            return if cpus.is_empty() { Err(none) } else { Ok(Self { cpus, nodes: Vec::new() }) };
        }
        Self::read_in(Path::new("/sys/devices/system"))
    }

    fn read_in(system: &Path) -> Result<Self, String> {
        let list = |path: &Path| -> Option<Vec<u32>> {
            Some(kernel_files::text(path)?.parse::<CpuList>().ok()?.numbers().to_vec())
        };
        let online = system.join("cpu/online");
        let cpus = list(&online).ok_or_else(|| format!("{} names no CPUs", online.display()))?;
        let Some(numbers) = list(&system.join("node/online")) else {
            // A kernel without CONFIG_NUMA.
            let node = Node { number: 0, cpus: cpus.clone(), memory_bytes: u64::MAX, distances: Vec::new() };
            return Ok(Self { cpus, nodes: vec![node] });
        };
        let node = |number: u32| {
            let directory = system.join(format!("node/node{number}"));
            let distances = kernel_files::text(directory.join("distance")).unwrap_or_default();
            Node {
                number,
                cpus: list(&directory.join("cpulist")).unwrap_or_default(),
                // `Node 0 MemTotal:       24683656 kB`
                memory_bytes: kernel_files::text(directory.join("meminfo"))
                    .and_then(|text| kib_field(&text, &format!("Node {number} MemTotal")))
                    .unwrap_or(0),
                distances: distances.split_whitespace().map_while(|word| word.parse().ok()).collect(),
            }
        };
        Ok(Self { cpus, nodes: numbers.into_iter().map(node).collect() })
    }

    fn plan(&self, numa: Numa, cpus: Option<&CpuList>) -> Result<PlacementPlan, String> {
        if self.nodes.is_empty() {
            return Err("the NUMA nodes are unknown: /sys is not mounted".to_string());
        }
        let worker = match cpus {
            None => self.nodes.iter().find(|node| !node.cpus.is_empty()),
            Some(cpus) => {
                self.check(cpus)?;
                let holds = |node: &&Node| cpus.numbers().iter().all(|cpu| node.cpus.contains(cpu));
                let found = self.nodes.iter().find(holds);
                Some(found.ok_or_else(|| format!("the CPUs {cpus} are on more than one NUMA node"))?)
            }
        };
        let worker = worker.ok_or("no NUMA node has a CPU")?;
        let own = || CpuList::new(worker.cpus.clone());
        let worker_cpus = cpus.cloned().or_else(own).ok_or("no NUMA node has a CPU")?;
        let page_node = match numa {
            Numa::Same => worker,
            Numa::Other => self.nearest_other(worker)?,
            Numa::Node(number) => self.nodes.iter().find(|node| node.number == number).ok_or_else(|| {
                let known: Vec<String> = self.nodes.iter().map(|node| node.number.to_string()).collect();
                format!("this machine has no NUMA node {number}, but {}", known.join(", "))
            })?,
        };
        if page_node.memory_bytes == 0 {
            return Err(format!("NUMA node {} has no memory", page_node.number));
        }
        Ok(PlacementPlan { worker_node: worker.number, worker_cpus, page_node: page_node.number })
    }

    fn nearest_other(&self, worker: &Node) -> Result<&Node, String> {
        if self.nodes.len() == 1 {
            return Err("this machine has one NUMA node".to_string());
        }
        let distance = |at: usize| worker.distances.get(at).copied().unwrap_or(u32::MAX);
        let others = self.nodes.iter().enumerate();
        others
            .filter(|(_, node)| node.number != worker.number && node.memory_bytes > 0)
            .min_by_key(|(at, node)| (distance(*at), node.number))
            .map(|(_, node)| node)
            .ok_or_else(|| "no other NUMA node has memory".to_string())
    }

    fn check(&self, cpus: &CpuList) -> Result<(), String> {
        let missing =
            CpuList::new(cpus.numbers().iter().copied().filter(|cpu| !self.cpus.contains(cpu)).collect());
        match (missing, CpuList::new(self.cpus.clone())) {
            (None, _) => Ok(()),
            (Some(missing), Some(online)) => {
                Err(format!("this machine has no CPU {missing} online, but {online}"))
            }
            (Some(missing), None) => Err(format!("this machine has no CPU {missing} online")),
        }
    }
}

/// CPUs that are online, by their lines of /proc/stat: `cpu3 1312 0 ...`.
fn counted_cpus(stat: &str) -> Vec<u32> {
    stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()).collect()
}

/// Check that a worker can be confined to these CPUs, by confining a thread of this process.
pub fn check_cpus(cpus: &CpuList) -> Result<(), String> {
    Topology::read()?.check(cpus)?;
    let mask = CpuMask::new(cpus.numbers());
    std::thread::spawn(move || mask.confine_this_thread())
        .join()
        .expect("the thread only makes system calls")
        .map_err(|error| format!("this process may not use all of the CPUs {cpus} (a cpuset?): {error}"))
}

/// Choose the placement of the worker and the pages of its file. The worker runs on its node: that
/// of `cpus`, else the lowest one that has CPUs, and then on all of them.
pub fn resolve(numa: Numa, cpus: Option<&CpuList>) -> Result<PlacementPlan, String> {
    let plan = Topology::read()?.plan(numa, cpus)?;
    check_cpus(&plan.worker_cpus)?;
    Ok(plan)
}

/// Nodes of a sample of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeShare {
    /// Pages that were in memory and whose node is known.
    pub looked_at: u64,
    /// Of these, those on the requested node.
    pub on_node: u64,
}

/// Move the pages of the file's first `len` bytes that are in memory to `node`. Pages that another
/// process maps stay on their node, which the kernel does not report: [`pages_on_node`] verifies
/// it.
///
/// On tmpfs the file itself is bound: its later pages are allocated there too, for any process, as
/// long as the file exists (numa_memory_policy.rst, "Shared Policy"; `shmem_set_policy` in
/// mm/shmem.c). A sparse file can therefore be bound. On other filesystems a later page is
/// allocated by the memory policy of the task that needs it.
pub fn place_pages(file: &File, len: u64, node: u32) -> io::Result<()> {
    let Some(mapping) = map(file, len)? else { return Ok(()) };
    let page_bytes = rustix::param::page_size();
    for (index, is_resident) in placement::resident_pages(&mapping)?.into_iter().enumerate() {
        // Only pages in the page tables of this process are moved.
        if is_resident {
            std::hint::black_box(mapping.bytes()[index * page_bytes]);
        }
    }
    placement::bind(&mapping, node)
}

/// Count how many pages of an even sample of the resident pages of the file's first `len` bytes are
/// on `node`.
pub fn pages_on_node(file: &File, len: u64, node: u32) -> io::Result<NodeShare> {
    let Some(mapping) = map(file, len)? else { return Ok(NodeShare { looked_at: 0, on_node: 0 }) };
    let page_bytes = rustix::param::page_size();
    let resident = placement::resident_pages(&mapping)?;
    let offsets: Vec<usize> =
        resident.iter().enumerate().filter_map(|(index, is)| is.then_some(index * page_bytes)).collect();
    let count = offsets.len().min(SAMPLE_PAGES_MAX);
    let sample: Vec<usize> = (0..count).map(|index| offsets[index * offsets.len() / count]).collect();
    for offset in &sample {
        std::hint::black_box(mapping.bytes()[*offset]);
    }
    let nodes = placement::nodes_of_pages(&mapping, &sample)?;
    let known: Vec<u32> = nodes.into_iter().filter_map(Result::ok).collect();
    let on_node = known.iter().filter(|found| **found == node).count() as u64;
    Ok(NodeShare { looked_at: known.len() as u64, on_node })
}

/// Map the file without readahead: querying must not bring pages in. `None` for an empty file.
fn map(file: &File, len: u64) -> io::Result<Option<FileMapping>> {
    // Past the end of the file, access would only raise a signal.
    let len = len.min(file.metadata()?.len());
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    if len == 0 {
        return Ok(None);
    }
    let mapping = FileMapping::new(file, len, false)?;
    mapping.advise(0..len, Advice::Random)?;
    Ok(Some(mapping))
}

/// Description of the nodes, for people.
pub fn describe() -> Result<String, String> {
    let topology = Topology::read()?;
    if topology.nodes.is_empty() {
        return Err("the NUMA nodes are unknown: /sys is not mounted".to_string());
    }
    let nodes: Vec<String> = topology
        .nodes
        .iter()
        .map(|node| match CpuList::new(node.cpus.clone()) {
            Some(cpus) => format!("node {}: CPUs {cpus}", node.number),
            None => format!("node {}: no CPU", node.number),
        })
        .collect();
    Ok(nodes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn node(number: u32, cpus: &[u32], memory_bytes: u64, distances: &[u32]) -> Node {
        Node { number, cpus: cpus.to_vec(), memory_bytes, distances: distances.to_vec() }
    }

    /// Node 0 has only memory, node 3 only CPUs; node 2 is nearer to node 1 than node 0.
    fn four() -> Topology {
        Topology {
            cpus: vec![0, 1, 2, 3, 4, 5],
            nodes: vec![
                node(0, &[], 1 << 30, &[10, 31, 31, 31]),
                node(1, &[0, 1], 1 << 30, &[31, 10, 21, 21]),
                node(2, &[2, 3], 1 << 30, &[31, 21, 10, 31]),
                node(3, &[4, 5], 0, &[31, 21, 31, 10]),
            ],
        }
    }

    fn cpus(text: &str) -> CpuList {
        text.parse().expect("list")
    }

    fn plan(numa: &str, list: Option<&str>) -> Result<PlacementPlan, String> {
        four().plan(numa.parse().expect("placement"), list.map(cpus).as_ref())
    }

    #[test]
    fn the_worker_keeps_to_one_node_and_the_pages_go_where_they_are_asked() {
        let placed = |worker_node, list, page_node| {
            Ok(PlacementPlan { worker_node, worker_cpus: cpus(list), page_node })
        };
        assert_eq!(plan("same", None), placed(1, "0-1", 1));
        assert_eq!(plan("other", None), placed(1, "0-1", 2));
        assert_eq!(plan("0", None), placed(1, "0-1", 0));
        assert_eq!(plan("same", Some("3")), placed(2, "3", 2));
        assert_eq!(plan("other", Some("4-5")), placed(3, "4-5", 1));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let reason = |numa, list| plan(numa, list).expect_err("refused");
        assert_eq!(reason("7", None), "this machine has no NUMA node 7, but 0, 1, 2, 3");
        assert_eq!(reason("3", None), "NUMA node 3 has no memory");
        assert_eq!(reason("same", Some("4")), "NUMA node 3 has no memory");
        assert_eq!(reason("same", Some("1-2")), "the CPUs 1-2 are on more than one NUMA node");
        assert_eq!(reason("same", Some("5-6")), "this machine has no CPU 6 online, but 0-5");
        let one = Topology { cpus: vec![0], nodes: vec![node(0, &[0], 1, &[10])] };
        assert_eq!(one.plan(Numa::Other, None), Err("this machine has one NUMA node".to_string()));
        assert!(one.plan(Numa::Same, None).is_ok());
    }

    #[test]
    fn without_sys_the_cpus_are_those_that_are_counted() {
        let stat = "cpu  9 0 9\ncpu0 1 0 2\ncpu3 8 0 7\nintr 5\ncpufreq 1\n";
        assert_eq!(counted_cpus(stat), [0, 3]);
        let unknown = Topology { cpus: vec![0, 3], nodes: Vec::new() };
        let refused = unknown.plan(Numa::Same, None).expect_err("no node is known");
        assert_eq!(refused, "the NUMA nodes are unknown: /sys is not mounted");
        assert!(unknown.check(&cpus("0")).is_ok());
    }

    #[test]
    fn nodes_are_read_from_sys() {
        let system = tempfile::tempdir().expect("directory");
        let write = |path: &str, text: &str| {
            let path = system.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            fs::write(path, text).expect("write");
        };
        assert!(Topology::read_in(system.path()).is_err());
        write("cpu/online", "0-1\n");
        let without = Topology::read_in(system.path()).expect("no nodes");
        assert_eq!(without.nodes.len(), 1);
        write("node/online", "0,2\n");
        write("node/node0/cpulist", "0-1\n");
        write("node/node0/meminfo", "Node 0 MemTotal:       24683656 kB\nNode 0 MemFree: 1 kB\n");
        write("node/node0/distance", "10 21\n");
        // A node with only memory has an empty list.
        write("node/node2/cpulist", "\n");
        write("node/node2/meminfo", "Node 2 MemTotal: 4 kB\n");
        write("node/node2/distance", "21 10\n");
        let topology = Topology::read_in(system.path()).expect("nodes");
        assert_eq!(topology.nodes[0], node(0, &[0, 1], 24_683_656 * 1024, &[10, 21]));
        assert_eq!(topology.nodes[1], node(2, &[], 4096, &[21, 10]));
    }

    #[test]
    fn this_machine_has_a_place_for_a_worker() {
        let plan = resolve(Numa::Same, None).expect("a placement");
        let other = resolve(Numa::Other, None);
        println!("{plan:?}, {other:?}, {:?}", describe());
        assert_eq!(plan.page_node, plan.worker_node);
        assert!(check_cpus(&cpus("8191")).is_err());
    }

    #[test]
    fn pages_lie_where_they_were_put() {
        let pages = (1 << 20) / rustix::param::page_size() as u64;
        let nodes = Topology::read().expect("nodes").nodes.len();
        for numa in [Numa::Same, Numa::Other, Numa::Node(1)] {
            let plan = match resolve(numa, None) {
                Ok(plan) => plan,
                Err(reason) => {
                    assert!(nodes == 1 && reason.starts_with("this machine has"), "{numa}: {reason}");
                    continue;
                }
            };
            // The folder of temporary files is often in memory; the current folder is often on a
            // device.
            let files = [tempfile::tempfile(), tempfile::tempfile_in(".")];
            for mut file in files.map(|file| file.expect("file")) {
                file.write_all(&vec![1; 1 << 20]).and_then(|()| file.sync_all()).expect("write");
                match place_pages(&file, 1 << 20, plan.page_node) {
                    Ok(()) => {}
                    // A kernel without CONFIG_NUMA, or a filter of system calls.
                    Err(error) => {
                        println!("skipped: numa-calls: mbind: {error}");
                        return;
                    }
                }
                let share = pages_on_node(&file, 1 << 20, plan.page_node).expect("nodes");
                assert_eq!(share, NodeShare { looked_at: pages, on_node: pages }, "{numa} of {plan:?}");
                let elsewhere = pages_on_node(&file, 1 << 20, plan.page_node + 1).expect("nodes");
                assert_eq!((elsewhere.looked_at, elsewhere.on_node), (pages, 0));
                println!("{numa}: {share:?} of {plan:?}");
            }
        }
        let empty = tempfile::tempfile().expect("file");
        assert_eq!(pages_on_node(&empty, 4096, 0).expect("nodes").looked_at, 0);
    }

    #[test]
    fn a_sparse_file_in_memory_keeps_its_node_for_pages_to_come() {
        const LEN: u64 = 1 << 20;
        let file = match tempfile::NamedTempFile::new_in("/dev/shm") {
            Ok(file) if crate::cache::in_memory(file.as_file()).is_some() => file,
            _ => {
                println!("skipped: tmpfs: /dev/shm is no tmpfs");
                return;
            }
        };
        file.as_file().set_len(LEN).expect("size");
        let node = Topology::read().expect("nodes").nodes.last().expect("a node").number;
        if let Err(error) = place_pages(file.as_file(), LEN, node) {
            println!("skipped: numa-calls: mbind: {error}");
            return;
        }
        assert_eq!(file.as_file().metadata().map(|file| blocks(&file)).expect("fstat"), 0);
        // Another mapping, of another descriptor: a policy that it has can only be the file's.
        let again = fs::File::open(file.path()).expect("open");
        let mapping = FileMapping::new(&again, LEN as usize, false).expect("map");
        let maps = fs::read_to_string("/proc/self/numa_maps").unwrap_or_default();
        let address = format!("{:x} ", mapping.bytes().as_ptr() as usize);
        match maps.lines().find_map(|line| line.strip_prefix(&address)) {
            Some(line) => assert!(line.starts_with(&format!("bind:{node} ")), "{line}"),
            None => println!("skipped: numa-maps: there is no numa_maps"),
        }
        // Pages of write(2) are on the node as well.
        (&mut file.as_file()).write_all(&vec![1; LEN as usize]).expect("write");
        let pages = LEN / rustix::param::page_size() as u64;
        let share = pages_on_node(file.as_file(), LEN, node).expect("nodes");
        assert_eq!(share, NodeShare { looked_at: pages, on_node: pages });
    }

    fn blocks(metadata: &fs::Metadata) -> u64 {
        std::os::unix::fs::MetadataExt::blocks(metadata)
    }
}
