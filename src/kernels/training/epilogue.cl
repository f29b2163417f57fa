/* The epilogue of FORWARD and ERRORS: what is applied to each sum of products. All kernels of the
 * two use this text. It is included twice: for single numbers after pointwise.cl, for sixteen lanes
 * after vector_pointwise.cl. Those files define the names below and the functions that are called
 * here. `column` is the column of the first number. Numbers from column `columns` on are padding
 * and become +0. */

/* 6.4, 6.5: y holds the sum and receives the output. With dropout, d receives the output after
 * it. */
QN_EPILOGUE_FN void QN_EPILOGUE(qn_finish_forward)(QN_GLOBAL float *y, QN_GLOBAL float *d,
                                                   qn_u32 column, qn_u32 columns, qn_u32 activation,
                                                   qn_u32 threshold, float keep,
                                                   QN_EPILOGUE_WORDS words) {
    const QN_EPILOGUE_NUMBERS v = QN_EPILOGUE(qn_within)(
        QN_EPILOGUE(qn_activate)(activation, QN_EPILOGUE(qn_read)(y)), column, columns);
    QN_EPILOGUE(qn_write)(y, v);
    if (threshold != 0u)
        QN_EPILOGUE(qn_write)
    (d,
     QN_EPILOGUE(qn_within)(QN_EPILOGUE(qn_dropped)(words, threshold, keep, v), column, columns));
}

/* 8.4, 8.5: e holds the sum and receives the error before dropout and activation. y is the
 * output. */
QN_EPILOGUE_FN void QN_EPILOGUE(qn_finish_errors)(QN_GLOBAL float *e, QN_GLOBAL const float *y,
                                                  qn_u32 column, qn_u32 columns, qn_u32 activation,
                                                  qn_u32 threshold, float keep,
                                                  QN_EPILOGUE_WORDS words) {
    QN_EPILOGUE_NUMBERS v = QN_EPILOGUE(qn_read)(e);
    if (threshold != 0u)
        v = QN_EPILOGUE(qn_dropped)(words, threshold, keep, v);
    v = QN_EPILOGUE(qn_derive)(activation, QN_EPILOGUE(qn_read)(y), v);
    QN_EPILOGUE(qn_write)(e, QN_EPILOGUE(qn_within)(v, column, columns));
}

#undef QN_EPILOGUE_FN
#undef QN_EPILOGUE
#undef QN_EPILOGUE_NUMBERS
#undef QN_EPILOGUE_WORDS
