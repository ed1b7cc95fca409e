# Sourced by scripts/setup and scripts/run: where the environment is, and how to enter it.
#
# Two kinds, told apart by $ros:
#   wheels   all of ROS 2 comes from pip, into a virtual environment of our own
#   sourced  the caller has sourced a ROS 2; we only add the Python libraries that it lacks
# Each distribution and kind has a folder of its own, because their files have the same names.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
distro=${ROS_DISTRO:-jazzy}

# Modules are compiled once, when they are first imported. Each process would do that anew: it took three times as long
# to begin.
unset PYTHONDONTWRITEBYTECODE

# A sourced ROS has rclpy on PYTHONPATH. Looking for the folder is much quicker than asking Python to import it.
ros_is_sourced() {
    [[ -n ${AMENT_PREFIX_PATH:-} && -n ${ROS_DISTRO:-} ]] || return 1
    local folder IFS=:
    for folder in ${PYTHONPATH:-}; do
        [[ -d $folder/rclpy ]] && return 0
    done
    return 1
}

if [[ ${CONSTRAINED_SIM_ENV:-} == "$root/.ros2/$distro"* ]]; then
    env_dir=$CONSTRAINED_SIM_ENV # we are called from inside: our own settings are not a sourced ROS
elif ros_is_sourced; then
    env_dir=$root/.ros2/$distro-sourced
else
    env_dir=$root/.ros2/$distro
fi
[[ $env_dir == *-sourced ]] && ros=sourced || ros=wheels
venv=$env_dir/venv

# Puts folders in front of a colon-separated variable. An empty entry would mean the current folder: never make one.
prepend() {
    local name=$1 IFS=:
    shift
    export "$name=$*${!name:+:${!name}}"
}

# Makes what is installed usable, as `. venv/setup.bash` would, without the time that takes.
enter() {
    [[ ${CONSTRAINED_SIM_ENV:-} == "$env_dir" ]] && return
    local site=("$venv"/lib/python3.*/site-packages)
    prepend PATH "$venv/bin" "$venv/lib/constrained_sim"
    prepend AMENT_PREFIX_PATH "$venv"
    prepend CMAKE_PREFIX_PATH "$venv"
    prepend LD_LIBRARY_PATH "$venv/lib"
    if [[ $ros == wheels ]]; then
        prepend LD_LIBRARY_PATH "${site[0]}"/ros_*.libs
        # The wheels otherwise start every Python twice, the second time with the line above.
        export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
    else
        prepend PYTHONPATH "${site[0]}" # before the sourced ROS, so that the locked versions win
    fi
    export ROS_DISTRO=$distro CONSTRAINED_SIM_ENV=$env_dir
}
