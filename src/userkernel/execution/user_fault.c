/* The bits in which a program reports what is wrong with an item (user_program.h), as a message.
 * For a range of items a program reports bits only. So user_grains.c computes the items of the
 * range one by one, up to the first with a fault, and user_run.c tells the fault of the first item
 * of all. */
#include "userkernel/execution/user_fault.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t lowest(uint64_t bits) { return (uint32_t)__builtin_ctzll(bits); }

static void name_item(const qn__user_job *job, int64_t item, char *text, size_t size) {
    const int64_t x = item % job->extent[2], row = item / job->extent[2];
    const int64_t y = row % job->extent[1], z = row / job->extent[1];
    if (job->source->dimensions == 1)
        snprintf(text, size, "item %" PRId64, x);
    else if (job->source->dimensions == 2)
        snprintf(text, size, "item (%" PRId64 ", %" PRId64 ")", y, x);
    else
        snprintf(text, size, "item (%" PRId64 ", %" PRId64 ", %" PRId64 ")", z, y, x);
}

static const char *describe(const qn__user_job *job, uint64_t fault, qn_error *err) {
    const qn__user_part *part = job->source->part;
    const uint64_t reads = fault >> QN__USER_FAULT_READ & 0xFFFFFF;
    const uint64_t nans = fault >> QN__USER_FAULT_NAN & 0xFFFFFF;
    if (fault >> 63) {
        qn__fail(err, QN_NUMERIC, "the value for the sum \"%s\" is infinite",
                 part[fault & 0xFF].name);
        return "guard the computation, for example with fmin and fmax";
    }
    if (fault >> 62) {
        qn__fail(err, QN_NUMERIC, "the sum \"%s\" %s this item is beyond the range of %s",
                 part[fault & 0xFF].name, part[fault & 0xFF].scans == 2 ? "before" : "up to",
                 qn__user_type_word(part[fault & 0xFF].type));
        return "scale what the items add, or sum another type";
    }
    if (fault & QN__USER_FAULT_DIVISION) {
        qn__fail(err, QN_NUMERIC, "an integer is divided by zero");
        return "test the divisor first";
    }
    if (fault & QN__USER_FAULT_ELEMENT) {
        qn__fail(err, QN_NUMERIC, "an index of a local array is out of range");
        return "test the index first, or make the array longer";
    }
    if (reads) {
        const qn__user_part *p = &part[lowest(reads)];
        if (p->bins > 0) {
            qn__fail(err, QN_NUMERIC, "the bin of \"%s\" is out of range (bins: %u)", p->name,
                     (unsigned)p->bins);
            return "test the bin first, or declare more bins";
        }
        if (p->components > 0) {
            qn__fail(err, QN_NUMERIC, "a component of \"%s\" is out of range (components: %u)",
                     p->name, (unsigned)p->components);
            return "test the component first, or declare more";
        }
        qn__fail(err, QN_NUMERIC,
                 p->use == QN__USER_HALOED ? "a neighbour in \"%s\" is beyond its reach of %u"
                                           : "an index of \"%s\" is out of range (dimensions: %u)",
                 p->name, (unsigned)(p->use == QN__USER_HALOED ? p->halo : p->dimensions));
        return p->use == QN__USER_HALOED ? "declare a wider halo"
                                         : "test the indices first: length gives the lengths";
    }
    qn__fail(err, QN_NUMERIC, "the result \"%s\" is not a number (NaN)", part[lowest(nans)].name);
    return "guard the computation: 0 / 0, infinities, NaN in an input, and functions outside their "
           "domain, such as log(-1) or asin(2), lead to it";
}

void qn__user_fault_note(atomic_int_fast64_t *first, int64_t item) {
    int_fast64_t known = atomic_load(first);
    while (item < known && !atomic_compare_exchange_weak(first, &known, item))
        ;
}

qn_status qn__user_fault_tell(const qn__user_job *job, uint64_t fault, int64_t item,
                              qn_error *err) {
    char name[96];
    const char *remedy = describe(job, fault, err);
    name_item(job, item, name, sizeof name);
    if (job->iterations > 1)
        qn__at(err, "%s of iteration %" PRId64, name, job->iteration);
    else
        qn__at(err, "%s", name);
    return qn__remedy(err, QN_NUMERIC, "%s", remedy);
}
