#include <quern/kernel_file.h>

/* Prices of European options by the formula of Black and Scholes (1973). */
INDEX(i);
INPUT(double, price); /* of the share today */
INPUT(double, strike);
INPUT(double, years); /* until the option ends */
SCALAR(double, rate, 0.02);
SCALAR(double, sigma, 0.3);
OUTPUT(double, call);
OUTPUT(double, put);
SUM(double, value); /* of all calls */

static const double ROOT_HALF = 0.7071067811865476;

/* The probability that a standard normal variable is at most x. */
static double normal(double x) { return 0.5 * (1 + erf(x * ROOT_HALF)); }

KERNEL {
    const double spread = sigma * sqrt(years);
    const double up = (log(price / strike) + (rate + sigma * sigma / 2) * years) / spread;
    const double now = strike * exp(-rate * years); /* what the strike is worth today */
    const double c = price * normal(up) - now * normal(up - spread);
    call = c;
    put = c + now - price;
    value = c;
}
