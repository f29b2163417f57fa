#include "store/http/http_date.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

int qn__http_date(const char *text, int64_t *seconds) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm parts = {0};
    char month[4];
    if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &parts.tm_mday, month, &parts.tm_year,
               &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6)
        return 0;
    const char *found = strstr(months, month);
    if (strlen(month) != 3 || !found || (found - months) % 3 != 0)
        return 0;
    parts.tm_mon = (int)((found - months) / 3);
    parts.tm_year -= 1900;
    *seconds = timegm(&parts);
    return 1;
}
