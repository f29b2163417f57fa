#include <quern/kernel_file.h>
INDEX(y, x);
HALO(float, u, 1, nearest);
SCALAR(float, rate, 0.2);
OUTPUT(float, u_new);
NEXT(u_new, u);
MAX(float, hottest);
KERNEL {
    u_new = u(0, 0) + rate * (u(-1, 0) + u(1, 0) + u(0, -1) + u(0, 1) - 4 * u(0, 0));
    hottest = u(0, 0);
}
