//! What is measured beside the cells that were asked for: a repetition that shows the noise, and the ceilings.

use pagewise_model::{
    Access, Bytes, CacheState, Cell, Conditions, Descriptor, Method, MethodOption, Role, Skew, Surroundings,
    Workload,
};

/// Reads of the ceiling of bandwidth.
const BANDWIDTH_READ: Bytes = Bytes::mib(1);
const BANDWIDTH_DEPTH: u32 = 8;

/// One method of each comparison a second time: what it differs by is noise.
pub fn controls(cells: &[Cell]) -> Vec<Cell> {
    let mut controls: Vec<Cell> = Vec::new();
    for cell in cells {
        if controls.iter().any(|control| control.conditions == cell.conditions) {
            continue;
        }
        let rivals = cells.iter().filter(|other| other.conditions == cell.conditions);
        let plain_pread = rivals.clone().find(|rival| rival.method.to_string() == "pread");
        let baseline = plain_pread.unwrap_or(cell);
        controls.push(Cell { role: Role::Control, ..baseline.clone() });
    }
    controls
}

/// The most that device and memory can do at the sizes that the cells issue.
pub fn ceilings(cells: &[Cell], page_bytes: u64) -> Vec<Cell> {
    let mut ceilings: Vec<Cell> = Vec::new();
    let mut add = |method: Method, conditions: Conditions| {
        let ceiling = Cell { role: Role::Ceiling, method, conditions };
        if !ceilings.contains(&ceiling) {
            ceilings.push(ceiling);
        }
    };
    for cell in cells {
        let Conditions { cache, read_bytes, align_bytes, file_bytes, .. } = cell.conditions;
        let from_cache =
            matches!(cache, CacheState::Warm | CacheState::AsIs) && cell.conditions.fits_memory();
        if cell.copies() && from_cache {
            let surroundings = Surroundings {
                cpus: cell.conditions.surroundings.cpus.clone(),
                numa: cell.conditions.surroundings.numa,
                ..Surroundings::default()
            };
            add(
                Method::anonymous(),
                Conditions { cache: CacheState::AsIs, surroundings, ..cell.conditions.clone() },
            );
        }
        if cache == CacheState::Warm && cell.conditions.fits_memory() && !cell.method.is_direct() {
            continue;
        }
        let at = |read_bytes: Bytes, reads_per_op: u32| Conditions {
            workload: Workload::RandomRead,
            span_bytes: file_bytes,
            skew: Skew::Uniform,
            dependent: false,
            cache: CacheState::AsIs,
            descriptor: Descriptor::Shared,
            read_bytes,
            reads_per_op,
            align_bytes: Bytes(align_bytes.0.next_multiple_of(page_bytes)),
            // Nothing of it goes through the page cache, and its own buffers need not fit under the limit.
            surroundings: Surroundings { memory_limit_bytes: None, ..cell.conditions.surroundings.clone() },
            ..cell.conditions.clone()
        };
        add(Method::uring_direct(Method::DEFAULT_DEPTH), at(read_bytes, cell.conditions.reads_per_op));
        add(Method::uring_direct(1), at(read_bytes, cell.conditions.reads_per_op));
        let by_page = cell.method.access() == Access::Mmap && cell.method.has(MethodOption::Random);
        if by_page
            && cell.depends_on_cache()
            && cell.conditions.workload == Workload::RandomRead
            && read_bytes.0 > page_bytes
        {
            add(
                Method::uring_direct(Method::DEFAULT_DEPTH),
                at(Bytes(page_bytes), cell.conditions.reads_per_op),
            );
            add(Method::uring_direct(1), at(Bytes(page_bytes), cell.conditions.reads_per_op));
        }
        if file_bytes >= BANDWIDTH_READ {
            add(Method::uring_direct(BANDWIDTH_DEPTH), at(BANDWIDTH_READ, 1));
        }
    }
    ceilings
}
