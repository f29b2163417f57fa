#include <quern/kernel_file.h>

/* A step of k-means (Lloyd, 1982): each point goes to the nearest of up to 16 centres, the first of
 * several. The sums and counts of the groups give the next centres. */
INDEX(i);
INPUT(double, x);
INPUT(double, y);
WHOLE(double, centre, 2); /* rows of x and y */
OUTPUT(uint8_t, group);
SUM(double, sum_x, 16);
SUM(double, sum_y, 16);
COUNT(points, 16);
SUM(double, squares);  /* of the distances from the nearest centre */
MAX(double, farthest); /* of them */

KERNEL {
    int best = 0;
    double least = 0;
    for (int k = 0; k < length(centre, 0); k++) {
        const double dx = x - centre(k, 0), dy = y - centre(k, 1);
        const double square = dx * dx + dy * dy;
        if (k == 0 || square < least) {
            best = k;
            least = square;
        }
    }
    group = (uint8_t)best;
    sum_x[best] = x;
    sum_y[best] = y;
    points[best] = 1;
    squares = least;
    farthest = least;
}
