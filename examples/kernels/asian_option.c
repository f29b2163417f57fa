#include <quern/kernel_file.h>

/* An Asian call by Monte Carlo: it pays what the mean price of the share at `dates` dates exceeds
 * the strike by. The same with the geometric mean has a known price, and tells how far the random
 * paths are off (Kemna and Vorst, 1990). */
INDEX(path);
RANDOM;
SCALAR(double, price, 100); /* of the share today */
SCALAR(double, strike, 100);
SCALAR(double, rate, 0.05);
SCALAR(double, sigma, 0.3);
SCALAR(double, years, 1);
SCALAR(int32_t, dates, 52);
SUM(double, paid); /* what the option pays, in money of today */
SUM(double, paid_squared);
SUM(double, geometric);
SUM(double, geometric_squared);
SUM(double, product); /* of both */

KERNEL {
    const double step = years / dates, spread = sigma * sqrt(step);
    const double drift = (rate - sigma * sigma / 2) * step;
    double way = 0, prices = 0, ways = 0; /* way: the logarithm of the price, less that of today */
    for (int k = 0; k < dates; k += 2) {
        way += drift + spread * normal(k);
        prices += exp(way);
        ways += way;
        if (k + 1 < dates) {
            way += drift + spread * normal(k | 1);
            prices += exp(way);
            ways += way;
        }
    }
    const double today = exp(-rate * years);
    const double a = today * max(price * (prices / dates) - strike, 0.0);
    const double g = today * max(price * exp(ways / dates) - strike, 0.0);
    paid = a;
    paid_squared = a * a;
    geometric = g;
    geometric_squared = g * g;
    product = a * g;
}
