#include <quern/kernel_file.h>

/* Heat in a plate: one explicit step of du/dt = a (d2u/dx2 + d2u/dy2). An item that is held keeps
 * its temperature (Dirichlet). An edge that is not held is insulated: its neighbour outside is
 * itself. */
INDEX(y, x);
HALO(double, u, 1, nearest);
INPUT(uint8_t, held);
SCALAR(double, rate, 0.2); /* a dt / dx^2; stable up to 0.25 */
OUTPUT(double, u_new);
SUM(double, heat);
MAX(double, change);
NEXT(u_new, u);

KERNEL {
    const double here = u(0, 0);
    const double around = (u(-1, 0) + u(1, 0)) + (u(0, -1) + u(0, 1));
    const double next = held ? here : here + rate * (around - 4 * here);
    u_new = next;
    heat = next;
    change = fabs(next - here);
}
