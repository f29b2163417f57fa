/* Functions of one number of a layer, beside those of activations.inc. */

/* 6.5, 8.4: the number y after dropout. */
QN_FN float qn_dropped(qn_u32 word, qn_u32 threshold, float keep, float y) {
    return word < threshold ? 0.0f : y * keep;
}

/* The row stride of n columns, in floats. */
QN_FN qn_u32 qn_ld(qn_u32 n) { return (n + 15u) / 16u * 16u; }

QN_FN float qn_read(QN_GLOBAL const float *p) { return *p; }
QN_FN void qn_write(QN_GLOBAL float *p, float x) { *p = x; }

/* Returns +0 in columns from `columns` on, which are padding. */
QN_FN float qn_within(float x, qn_u32 column, qn_u32 columns) {
    return column < columns ? x : 0.0f;
}

/* The epilogue for one number and its dropout word. */
#define QN_EPILOGUE_FN QN_FN
#define QN_EPILOGUE(name) name
#define QN_EPILOGUE_NUMBERS float
#define QN_EPILOGUE_WORDS qn_u32
