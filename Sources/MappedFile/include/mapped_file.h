/* Files mapped for reading whose missing pages do not end the process. Knows no format. */
#ifndef MAPPED_FILE_H
#define MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__clang__)
#pragma clang assume_nonnull begin
#define MAPPED_FILE_NULLABLE _Nullable
#else
#define MAPPED_FILE_NULLABLE
#endif

typedef struct mapped_file mapped_file;

/* Maps `size` bytes (more than 0) of an open file; the descriptor may be closed then. NULL where the system refuses
 * (errno says why) or more files are mapped than can be looked after (errno is EMFILE).
 *
 * When somebody shortens the file, what is missing reads as zeros from then on. The handler of SIGBUS that does this
 * passes every other fault on to the handler that was there before. */
mapped_file *MAPPED_FILE_NULLABLE mapped_file_open(int descriptor, size_t size);

const void *mapped_file_bytes(const mapped_file *file);

/* False once a byte was read that the file does not have any more. */
bool mapped_file_is_whole(const mapped_file *file);

void mapped_file_close(mapped_file *file);

#if defined(__clang__)
#pragma clang assume_nonnull end
#endif
#endif
