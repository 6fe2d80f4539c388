/* dcs_paper.h: the names of the 1990 paper that have no prefix. dcs.h includes it, so that the programs of the paper's
 * appendices compile as they stand; a program that does not want these names defines DCS_NO_PAPER_NAMES before it
 * includes a header of DCS. A name that another header has taken stays that header's: Figure 1 needs no more of TRUE
 * and BLOCK than that they are not 0, and of NOERROR that it is 0. */
#ifndef DCS_PAPER_H
#define DCS_PAPER_H

#ifndef NO_ERROR
#define NO_ERROR D_OK
#endif
#ifndef NOERROR
#define NOERROR D_OK
#endif
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif
#ifndef BLOCK
#define BLOCK D_BLOCK
#endif

#endif
