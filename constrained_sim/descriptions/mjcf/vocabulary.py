"""Elements and attributes of MJCF, as MuJoCo 3 and 4 know them. MuJoCo refuses all others, and so do we."""

from __future__ import annotations

from dataclasses import replace

from constrained_sim.descriptions.vocabulary import Rule, Vocabulary

NONE: tuple[str, ...] = ()
FALSE = ("false",)
ZERO = ("0",)

ORIENTATION = "quat=4 axisangle=4 xyaxes=6 zaxis=3 euler=3"
SOLVER = "solref solimp"
LIMIT_SOLVER = "solreflimit solimplimit solreffriction solimpfriction margin"

BODY = Rule(
    numbers=f"pos=3 {ORIENTATION}",
    words="name childclass",
    unused="user sleep simple mocap",
    refused={"gravcomp": ZERO},
    children="body frame inertial joint freejoint geom site",
    unused_children="camera light",
    refused_children={tag: NONE for tag in ("replicate", "attach", "composite", "flexcomp", "plugin")},
)

JOINT = Rule(
    numbers="pos=3 axis=3 stiffness=1-3 range=2 actuatorfrcrange=2 ref=1 springref=1 armature=1 "
    "damping=1-3 frictionloss=1",
    words="name class type limited actuatorfrclimited",
    unused=f"group user actuatorgravcomp {LIMIT_SOLVER}",
    refused={"springdamper": ZERO},
)

GEOM = Rule(
    numbers=f"size=1-3 pos=3 fromto=6 {ORIENTATION} mass=1 density=1 friction=1-3 contype=1 conaffinity=1 group=1 "
    "condim=1 rgba=4",
    words="name class type mesh hfield material",
    unused=f"priority user margin gap solmix fluidcoef {SOLVER}",
    refused={"fluidshape": ("none",), "shellinertia": FALSE, "surfacevel": ZERO, "adhesion": ZERO, "fitscale": ("1",)},
    refused_children={"plugin": NONE},
)

SITE = Rule(numbers=f"pos=3 fromto=6 {ORIENTATION}", words="name class", unused="type group material size rgba user")

MESH = Rule(
    numbers="scale=3 refpos=3 refquat=4 vertex=* face=*",
    words="name class file inertia",
    unused="content_type normal texcoord smoothnormal maxhullvert material",
    refused={"builtin": ("none",), "params": NONE},
    refused_children={"plugin": NONE},
)

DRIVE = (
    "name class joint jointinparent tendon site refsite slidersite cranksite body ctrllimited forcelimited actlimited"
)
SIGNAL = "group user nsample interp delay lengthrange actearly dyntype dynprm actdim actrange velrange ffrange"
REFLECTED = {"armature": ZERO, "damping": ZERO}

ACTUATOR = Rule(
    numbers="ctrlrange=2 forcerange=2 gear=1-6 cranklength=1",
    words=DRIVE,
    unused=f"{SIGNAL} kp kv ki dampratio timeconst inheritrange imax slewmax input",
    refused=REFLECTED,
)

GENERAL = replace(
    ACTUATOR,
    numbers=f"{ACTUATOR.numbers} gainprm=* biasprm=*",
    words=f"{DRIVE} gaintype biastype",
    unused=f"{SIGNAL} input",
)

MUSCLE = replace(ACTUATOR, unused=f"{SIGNAL} timeconst tausmooth range force scale lmin lmax vmax fpmax fvmax")

CYLINDER = replace(ACTUATOR, unused=f"{SIGNAL} timeconst area diameter bias")

DC_MOTOR = replace(
    ACTUATOR,
    unused=f"{SIGNAL} motorconst resistance nominal saturation inductance cogging controller thermal lugre input",
)

ADHESION = replace(ACTUATOR, unused=f"{SIGNAL} gain")

ACTUATORS = {
    "general": GENERAL,
    "motor": ACTUATOR,
    "position": ACTUATOR,
    "velocity": ACTUATOR,
    "intvelocity": ACTUATOR,
    "orientation": ACTUATOR,
    "pid": replace(ACTUATOR, unused=f"{ACTUATOR.unused} posrange"),
    "damper": ACTUATOR,
    "cylinder": CYLINDER,
    "muscle": MUSCLE,
    "adhesion": ADHESION,
    "dcmotor": DC_MOTOR,
}

PASSIVE_FORCES = {key: ZERO for key in ("stiffness", "damping", "frictionloss", "armature")}

TENDON = Rule(
    numbers="range=2",
    words="name class limited",
    unused="group user width material rgba springlength actuatorfrclimited actuatorfrcrange " + LIMIT_SOLVER,
    refused=PASSIVE_FORCES,
)

EQUALITY = Rule(words="name class active", unused=SOLVER)

VISUAL_CLASSES = "material camera light pair"

SENSORS = "extension visual size statistic custom keyframe sensor"

MJCF = Vocabulary(
    "MJCF",
    {
        "mujoco": Rule(
            words="model",
            children="compiler option default asset worldbody tendon equality actuator contact",
            unused_children=SENSORS,
            refused_children={"deformable": NONE},
        ),
        "compiler": Rule(
            numbers="boundmass=1 boundinertia=1 settotalmass=1 inertiagrouprange=2",
            words="angle autolimits eulerseq meshdir assetdir strippath inertiafromgeom balanceinertia",
            unused="texturedir fitaabb discardvisual usethread fusestatic saveinertial alignfree conflict",
            refused={"coordinate": ("local",)},
            unused_children="lengthrange",
        ),
        "option": Rule(
            numbers="gravity=3",
            unused="timestep apirate impratio tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance "
            "magnetic o_margin o_solref o_solimp o_friction integrator cone jacobian solver iterations ls_iterations "
            "noslip_iterations mpr_iterations mpr_tolerance ccd_iterations sdf_iterations sdf_initpoints "
            "actuatorgroupdisable collision",
            refused={"density": ZERO, "viscosity": ZERO, "wind": ZERO},
            children="flag",
        ),
        "flag": Rule(
            words="gravity constraint equality limit spring damper passive frictionloss actuation",
            unused="contact clampctrl warmstart filterparent refsafe sensor midphase eulerdamp autoreset nativeccd "
            "island multiccd override energy fwdinv invdiscrete sleep diagexact",
        ),
        "default": Rule(
            words="class",
            children=f"default mesh joint geom site connect weld equality tendon {' '.join(ACTUATORS)}",
            unused_children=VISUAL_CLASSES,
        ),
        "default/equality": EQUALITY,
        "default/tendon": TENDON,
        "asset": Rule(
            children="mesh", shown="material", unused_children="texture skin hfield", refused_children={"model": NONE}
        ),
        "mesh": MESH,
        "worldbody": replace(BODY, refused={}, words="", numbers=""),
        "body": BODY,
        "frame": replace(BODY, refused={}, unused=""),
        "inertial": Rule(numbers=f"pos=3 mass=1 diaginertia=3 fullinertia=6 {ORIENTATION}"),
        "joint": JOINT,
        "freejoint": Rule(words="name", unused="group align user"),
        "geom": GEOM,
        "site": SITE,
        "tendon": Rule(children="fixed spatial"),
        "fixed": replace(TENDON, children="joint"),
        "fixed/joint": Rule(numbers="coef=1", words="joint"),
        "spatial": replace(TENDON, unused_children="site geom pulley"),
        "equality": Rule(
            children="connect weld joint tendon",
            refused_children={tag: NONE for tag in ("flex", "flexvert", "flexstrain", "distance")},
        ),
        "connect": replace(EQUALITY, numbers="anchor=3", words=f"{EQUALITY.words} body1 body2 site1 site2"),
        "weld": replace(
            EQUALITY,
            numbers="relpose=7 anchor=3",
            words=f"{EQUALITY.words} body1 body2 site1 site2",
            unused=f"{SOLVER} torquescale",
        ),
        "equality/joint": replace(EQUALITY, numbers="polycoef=1-5", words=f"{EQUALITY.words} joint1 joint2"),
        "equality/tendon": replace(EQUALITY, numbers="polycoef=1-5", words=f"{EQUALITY.words} tendon1 tendon2"),
        "contact": Rule(unused_children="pair exclude"),
        "actuator": Rule(children=" ".join(ACTUATORS), refused_children={"plugin": NONE}),
        **ACTUATORS,
    },
    is_closed=True,
    once="inertial freejoint",
)
