#include "time_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "listen/listen.h"

static const int64_t day_us = 86400LL * 1000000;

/* Days since 1970-01-01 of a date in the Gregorian calendar: years begin in March, so that the leap
 * day is the last one of its year; 400 years have 146097 days. */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    days += 719468;
    int64_t era = days / 146097, of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t shifted = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * shifted + 2) / 5 + 1);
    *ret_month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *ret_year = year + era * 400 + (*ret_month <= 2);
}

static bool digits(const char **at, int count, int *ret)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        char d = (*at)[i];
        if (d < '0' || d > '9')
            return false;
        n = n * 10 + (d - '0');
    }
    *at += count;
    *ret = n;
    return true;
}

static bool expect(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

bool listen__time_parse(const char *text, int64_t *ret_us)
{
    const char *at = text;
    int year, month, day, hour, minute, second, micro = 0;
    if (!digits(&at, 4, &year) || !expect(&at, '-') || !digits(&at, 2, &month) ||
        !expect(&at, '-') || !digits(&at, 2, &day) || !expect(&at, 'T') || !digits(&at, 2, &hour) ||
        !expect(&at, ':') || !digits(&at, 2, &minute) || !expect(&at, ':') ||
        !digits(&at, 2, &second))
        return false;
    if (expect(&at, '.') && !digits(&at, 6, &micro))
        return false;
    if (strcmp(at, "Z") != 0 || year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 ||
        hour > 23 || minute > 59 || second > 60)
        return false;
    int64_t seconds = (hour * 60 + minute) * 60 + second;
    *ret_us = days_of(year, month, day) * day_us + seconds * 1000000 + micro;
    return true;
}

bool listen_since_parse(const char *text, int64_t *ret_us)
{
    char *end;
    if (listen__time_parse(text, ret_us)) {
        *ret_us += *ret_us == 0; /* the beginning of 1970: 0 would mean from now on */
        return *ret_us > 0;
    }
    double seconds = strtod(text, &end);
    if (!*text || *end || !isfinite(seconds) || seconds <= 0 || seconds > 253402300799.0)
        return false;
    *ret_us = (int64_t)(seconds * 1e6);
    return *ret_us > 0;
}

void listen__time_put(struct buf *out, int64_t us)
{
    if (us < 0)
        us = 0;
    int64_t year, of_day = us % day_us;
    int month, day;
    date_of(us / day_us, &year, &month, &day);
    int64_t s = of_day / 1000000;
    buf_printf(out, "%04lld-%02d-%02dT%02d:%02d:%02d.%06dZ", (long long)year, month, day,
               (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60), (int)(of_day % 1000000));
}
