#include "num/lbfgs.h"

#include "base/memory.h"
#include <math.h>
#include <string.h>

/* The constants of docs/exactness.md 17.14. */
#define DECREASE 1e-4 /* c1: part of the decrease that the slope promises */
#define CURVATURE 0.9 /* c2 */
#define NOISE 0x1p-20 /* of the value: what float32 passes leave uncertain */
#define LEAST_NOISE 0x1p-24
#define FLATTEST 0x1p-30 /* least product of a pair, in parts of the square of its gradients */
enum { TRIALS = 30 };

static double sign_of(double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; }

/* ---------------------------------------------------------------------------------------- memory
 */

uint64_t qn__lbfgs_bytes(void) {
    return (2 * QN__LBFGS_PAIRS + 1) * sizeof(float) + 4 * sizeof(double);
}

qn_status qn__lbfgs_create(qn__lbfgs *of, uint64_t n, const uint8_t *penal, float *trial,
                           qn_error *err) {
    *of = (qn__lbfgs){.n = n, .penal = penal, .trial = trial};
    of->point = qn__alloc(n, sizeof(float), err);
    of->history = qn__alloc(2 * QN__LBFGS_PAIRS * n, sizeof(float), err);
    of->gradient = qn__alloc(n, sizeof(double), err);
    of->slope = qn__alloc(n, sizeof(double), err);
    of->direction = qn__alloc(n, sizeof(double), err);
    of->next = qn__alloc(n, sizeof(double), err);
    if (of->point && of->history && of->gradient && of->slope && of->direction && of->next)
        return QN_OK;
    qn__lbfgs_release(of);
    return QN_MEMORY;
}

void qn__lbfgs_release(qn__lbfgs *of) {
    qn__free(of->point);
    qn__free(of->history);
    qn__free(of->gradient);
    qn__free(of->slope);
    qn__free(of->direction);
    qn__free(of->next);
    *of = (qn__lbfgs){0};
}

/* -------------------------------------------------------------------------------- the penalties */

/* The value with penalties, and the gradient with the L2 penalty, from those without. */
static double penalise(const qn__lbfgs *of, double value, double *gradient) {
    double squares = 0, sizes = 0;
    for (uint64_t i = 0; i < of->n; ++i) {
        const double x = of->trial[i];
        if (!of->penal[i])
            continue;
        squares = squares + x * x;
        sizes = sizes + fabs(x);
        gradient[i] = gradient[i] + of->l2 * x;
    }
    value = value + 0.5 * of->l2 * squares;
    return value + of->l1 * sizes;
}

/* The slope of one parameter: its gradient, or with an L1 penalty that of the side to which the
 * function falls; 0 where it falls to neither. */
static double slope_at(const qn__lbfgs *of, uint64_t i) {
    const double g = of->gradient[i], x = of->point[i];
    if (of->l1 == 0 || !of->penal[i])
        return g;
    if (x != 0)
        return g + sign_of(x) * of->l1;
    if (g + of->l1 < 0)
        return g + of->l1;
    return g - of->l1 > 0 ? g - of->l1 : 0;
}

/* Fills the slopes and their largest magnitude. */
static void find_slopes(qn__lbfgs *of) {
    of->largest = 0;
    for (uint64_t i = 0; i < of->n; ++i) {
        of->slope[i] = slope_at(of, i);
        const double size = fabs(of->slope[i]);
        of->largest = size > of->largest ? size : of->largest;
    }
}

qn_status qn__lbfgs_begin(qn__lbfgs *of, qn__lbfgs_fn evaluate, void *user, qn_error *err) {
    double value;
    if (of->known)
        return QN_OK;
    memcpy(of->point, of->trial, of->n * sizeof(float));
    const qn_status status = evaluate(user, of->trial, &value, of->gradient, err);
    if (status != QN_OK)
        return status;
    of->value = penalise(of, value, of->gradient);
    if (!isfinite(of->value))
        return qn__fail(err, QN_NUMERIC, "the loss with its penalties is not finite");
    find_slopes(of);
    of->known = 1;
    return QN_OK;
}

int qn__lbfgs_converged(const qn__lbfgs *of) { return of->largest <= of->tolerance; }

/* ----------------------------------------------------------------------------------- direction */

static const float *step_of(const qn__lbfgs *of, uint32_t pair) {
    return of->history + 2 * pair * of->n;
}

static const float *change_of(const qn__lbfgs *of, uint32_t pair) {
    return step_of(of, pair) + of->n;
}

static double dot(const float *a, const double *b, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i)
        sum = sum + (double)a[i] * b[i];
    return sum;
}

static double dot_doubles(const double *a, const double *b, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i)
        sum = sum + a[i] * b[i];
    return sum;
}

static double dot_floats(const float *a, const float *b, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i)
        sum = sum + (double)a[i] * (double)b[i];
    return sum;
}

static void add(double *to, double factor, const float *more, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i)
        to[i] = to[i] + factor * (double)more[i];
}

void qn__lbfgs_restored(qn__lbfgs *of) {
    for (uint32_t k = 0; k < of->pairs; ++k)
        of->rho[k] = 1.0 / dot_floats(step_of(of, k), change_of(of, k), of->n);
    of->known = 0;
}

/* The scale of the direction: that of the newest pair; without one a step of length 1 at most. */
static double first_scale(const qn__lbfgs *of) {
    if (of->pairs > 0) {
        const float *y = change_of(of, of->pairs - 1);
        return 1.0 / (of->rho[of->pairs - 1] * dot_floats(y, y, of->n));
    }
    const double length = sqrt(dot_doubles(of->slope, of->slope, of->n));
    return length > 1 ? 1.0 / length : 1.0;
}

/* The two loops (Nocedal 1980); then, with an L1 penalty, only the parts that lead downhill
 * (Andrew and Gao 2007). Returns the slope along the direction. */
static double find_direction(qn__lbfgs *of) {
    double *d = of->direction, along[QN__LBFGS_PAIRS];
    memcpy(d, of->slope, of->n * sizeof *d);
    for (uint32_t k = of->pairs; k-- > 0;) {
        along[k] = of->rho[k] * dot(step_of(of, k), d, of->n);
        add(d, -along[k], change_of(of, k), of->n);
    }
    const double scale = first_scale(of);
    for (uint64_t i = 0; i < of->n; ++i)
        d[i] = d[i] * scale;
    for (uint32_t k = 0; k < of->pairs; ++k) {
        const double back = of->rho[k] * dot(change_of(of, k), d, of->n);
        add(d, along[k] - back, step_of(of, k), of->n);
    }
    for (uint64_t i = 0; i < of->n; ++i) {
        d[i] = 0.0 - d[i];
        if (of->l1 != 0 && of->penal[i] && d[i] * of->slope[i] >= 0)
            d[i] = 0;
    }
    return dot_doubles(of->slope, d, of->n);
}

/* --------------------------------------------------------------------------------- line search */

/* The trial at `length` along the direction, kept in the orthant of the point; 0 if it is the point
 * itself. */
static int set_trial(qn__lbfgs *of, double length) {
    int differs = 0;
    for (uint64_t i = 0; i < of->n; ++i) {
        const double x = of->point[i];
        float to = (float)(x + length * of->direction[i]);
        if (of->l1 != 0 && of->penal[i]) {
            const double side = x != 0 ? sign_of(x) : sign_of(0.0 - of->slope[i]);
            to = (double)to * side > 0 ? to : 0.0f;
        }
        of->trial[i] = to;
        differs |= to != of->point[i];
    }
    return differs;
}

/* What the slopes promise for the way to the trial. */
static double promised(const qn__lbfgs *of) {
    double sum = 0;
    for (uint64_t i = 0; i < of->n; ++i)
        sum = sum + of->slope[i] * ((double)of->trial[i] - (double)of->point[i]);
    return sum;
}

typedef enum judgement { TOO_SHORT, GOOD, TOO_LONG } judgement;

static judgement judge(const qn__lbfgs *of, double length, double slope, double value) {
    const double noise = NOISE * fabs(of->value) + LEAST_NOISE;
    const double hoped = of->l1 != 0 ? promised(of) : length * slope;
    if (!isfinite(value) || value > of->value + DECREASE * hoped + noise)
        return TOO_LONG;
    if (of->l1 != 0)
        return GOOD;
    const double there = dot_doubles(of->next, of->direction, of->n);
    if (there < CURVATURE * slope)
        return TOO_SHORT;
    return there > 0.0 - CURVATURE * slope ? TOO_LONG : GOOD;
}

/* A new pair, unless the function is too flat or bends downward between the points. */
static void remember(qn__lbfgs *of) {
    const uint64_t n = of->n;
    if (of->pairs == QN__LBFGS_PAIRS) {
        memmove(of->history, of->history + 2 * n,
                2 * (QN__LBFGS_PAIRS - 1) * n * sizeof *of->history);
        memmove(of->rho, of->rho + 1, (QN__LBFGS_PAIRS - 1) * sizeof *of->rho);
        --of->pairs;
    }
    float *s = of->history + 2 * of->pairs * n, *y = s + n;
    for (uint64_t i = 0; i < n; ++i) {
        s[i] = (float)((double)of->trial[i] - (double)of->point[i]);
        y[i] = (float)(of->next[i] - of->gradient[i]);
    }
    const double product = dot_floats(s, y, n), square = dot_floats(y, y, n);
    if (!(product > FLATTEST * square) || !isfinite(1.0 / product))
        return;
    of->rho[of->pairs++] = 1.0 / product;
}

static void move(qn__lbfgs *of, double value) {
    double *const before = of->gradient;
    remember(of);
    memcpy(of->point, of->trial, of->n * sizeof *of->point);
    of->gradient = of->next;
    of->next = before;
    of->value = value;
    find_slopes(of);
}

/* Takes a trial that was too short: it decreases the function, and nothing better was found. */
static qn_status take_short(qn__lbfgs *of, double length, qn__lbfgs_fn evaluate, void *user,
                            qn_error *err) {
    double value;
    set_trial(of, length);
    const qn_status status = evaluate(user, of->trial, &value, of->next, err);
    if (status == QN_OK)
        move(of, penalise(of, value, of->next));
    return status;
}

/* Looks for a good length by doubling and halving. *moved is 0 where none was found. */
static qn_status search(qn__lbfgs *of, double slope, qn__lbfgs_fn evaluate, void *user, int *moved,
                        qn_error *err) {
    double low = 0, high = INFINITY, length = 1, value;
    *moved = 0;
    for (int trial = 0; trial < TRIALS && set_trial(of, length); ++trial) {
        const qn_status status = evaluate(user, of->trial, &value, of->next, err);
        if (status != QN_OK && status != QN_NUMERIC)
            return status;
        value = status == QN_OK ? penalise(of, value, of->next) : INFINITY;
        const judgement is = judge(of, length, slope, value);
        if (is == GOOD) {
            move(of, value);
            *moved = 1;
            return QN_OK;
        }
        *(is == TOO_LONG ? &high : &low) = length;
        length = isinf(high) ? 2 * length : 0.5 * (low + high);
    }
    *moved = low > 0;
    return low > 0 ? take_short(of, low, evaluate, user, err) : QN_OK;
}

qn_status qn__lbfgs_iterate(qn__lbfgs *of, qn__lbfgs_fn evaluate, void *user, int *moved,
                            qn_error *err) {
    qn_status status = QN_OK;
    *moved = 0;
    for (int again = 1; again && !*moved && status == QN_OK;) {
        const double slope = find_direction(of);
        if (slope < 0)
            status = search(of, slope, evaluate, user, moved, err);
        again = of->pairs > 0; /* once more, straight downhill */
        if (!*moved)
            of->pairs = 0;
    }
    if (!*moved)
        memcpy(of->trial, of->point, of->n * sizeof *of->trial);
    return status;
}
