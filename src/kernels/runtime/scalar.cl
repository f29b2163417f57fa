/* The operations of num/elementary.inc on one float, in every language of the text. */
typedef float vf;
typedef qn_i32 vi;

#define V_FN QN_FN
#define V_NAME(f) qn_##f

QN_FN vf v_set(float c) { return c; }
QN_FN vi vi_set(qn_i32 c) { return c; }
QN_FN vf v_add(vf a, vf b) { return a + b; }
QN_FN vf v_sub(vf a, vf b) { return a - b; }
QN_FN vf v_mul(vf a, vf b) { return a * b; }
QN_FN vf v_fma(vf a, vf b, vf c) { return qn_fma(a, b, c); }
QN_FN vf v_fnma(vf a, vf b, vf c) { return qn_fma(-a, b, c); }
QN_FN vf v_min(vf a, vf b) { return a < b ? a : b; }
QN_FN vf v_max(vf a, vf b) { return a > b ? a : b; }
QN_FN vf v_sel_lt(vf a, vf b, vf x, vf y) { return a < b ? x : y; }
QN_FN vf v_sel_le(vf a, vf b, vf x, vf y) { return a <= b ? x : y; }
QN_FN vi v_bits(vf a) { return qn_as_i32(a); }
QN_FN vf v_float(vi i) { return qn_as_float(i); }
QN_FN vf v_cvt(vi i) { return (float)i; }
QN_FN vi vi_sub(vi a, vi b) { return (vi)((qn_u32)a - (qn_u32)b); }
QN_FN vi vi_and(vi a, vi b) { return a & b; }
QN_FN vi vi_or(vi a, vi b) { return a | b; }
QN_FN vi vi_shl(vi a, qn_i32 s) { return (vi)((qn_u32)a << s); }
QN_FN vi vi_sar(vi a, qn_i32 s) { return a >> s; }
