package pagewise;

/**
 * The numbers by which a sample is taken: fields of {@code open}, whose rules ../PROTOCOL.md has.
 */
record Policy(long batchMinNs, long batchMaxNs, long gapMinNs, long gapMaxNs, int gapMeasures, long stallNs,
        long deviceCheckNs) {
    static Policy of(Request open) {
        return new Policy(open.bound("batch_min_ns"), open.bound("batch_max_ns"), open.bound("gap_min_ns"),
                open.bound("gap_max_ns"), open.count("gap_measures"), open.bound("stall_ns"),
                open.bound("device_check_ns"));
    }
}
