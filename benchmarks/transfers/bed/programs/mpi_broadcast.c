/* mpi_broadcast FILE FOLDER...: rank 0 reads FILE in pieces of 1 MiB and broadcasts them; rank r > 0 writes them to
 * <name of FILE>.part in the r-th folder, and renames that when it has them all. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static void require(int condition, const char *action)
{
    if (!condition) {
        perror(action);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    static char buffer[PIECE], path[4096], part[4104];
    long long size = 0;
    int rank, file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    require(argc >= 2 + rank && argc >= 3, "mpi_broadcast FILE FOLDER...");
    if (rank == 0) {
        struct stat about;
        file = open(argv[1], O_RDONLY);
        require(file >= 0 && fstat(file, &about) == 0, argv[1]);
        size = about.st_size;
    } else {
        const char *slash = strrchr(argv[1], '/');
        snprintf(path, sizeof path, "%s/%s", argv[1 + rank], slash ? slash + 1 : argv[1]);
        snprintf(part, sizeof part, "%s.part", path);
        file = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        require(file >= 0, part);
    }
    MPI_Bcast(&size, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    for (long long at = 0; at < size; at += PIECE) {
        int count = size - at < PIECE ? (int)(size - at) : PIECE;
        if (rank == 0)
            require(pread(file, buffer, count, at) == count, argv[1]);
        MPI_Bcast(buffer, count, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (rank)
            require(pwrite(file, buffer, count, at) == count, part);
    }
    close(file);
    if (rank)
        require(rename(part, path) == 0, path);
    MPI_Finalize();
    return 0;
}
