/* What FORWARD and ERRORS do to a sum of products: the text of every kernel of these two. It is
 * included for single numbers behind pointwise.cl and for sixteen lanes behind vector_pointwise.cl,
 * which define the names below and the functions that are called here. `column` is the first column
 * of the numbers; numbers from column `columns` on are padding and become +0. */

/* 6.4, 6.5: y, the sum, becomes the output; with dropout, d becomes the output after it. */
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

/* 8.4, 8.5: the error e, a sum, goes back through dropout and through the derivative at y. */
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
