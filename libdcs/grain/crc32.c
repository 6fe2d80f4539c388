/* CRC-32 of IEEE 802.3 (reflected, 0xEDB88320), as in zlib. */
#include "grain_run.h"

uint32_t dcs_grain_crc32(uint32_t crc, const void *bytes, size_t length)
{
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++) value = (value & 1u) ? (value >> 1) ^ 0xEDB88320u : value >> 1;
            table[i] = value;
        }
    }
    const unsigned char *p = bytes;
    crc = ~crc;
    while (length-- > 0) crc = table[(crc ^ *p++) & 0xFFu] ^ (crc >> 8);
    return ~crc;
}
