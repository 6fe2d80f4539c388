"""Jobs of Slurm's and Grid Engine's commands as grains of a pool: what `sbatch`, `qsub` and the others of libexec/dcs are made of."""
