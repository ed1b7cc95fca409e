"""Elements and attributes of SDFormat 1.6 to 1.11, those of 1.4, 1.5 and 1.12 among them."""

from __future__ import annotations

from constrained_sim.descriptions.vocabulary import Rule, Vocabulary

NONE: tuple[str, ...] = ()
YES, NO = ("true", "1"), ("false", "0")

NUMBER, LIMIT, VECTOR = Rule(text="1"), Rule(text="~1"), Rule(text="3")

SDF = Vocabulary(
    "SDF",
    {
        "sdf": Rule(words="version", children="model world", unused_children="light actor"),
        "world": Rule(
            words="name",
            children="model",
            unused_children="gravity physics scene light gui plugin atmosphere magnetic_field wind audio actor road "
            "state spherical_coordinates population frame",
            refused_children={"include": NONE, "joint": NONE},
        ),
        "model": Rule(
            words="name",
            unused="canonical_link namespace",
            refused={"placement_frame": ("", "__model__")},
            children="link joint frame pose",
            unused_children="plugin gripper self_collide allow_auto_disable enable_wind state namespace",
            refused_children={"model": NONE, "include": NONE, "static": NO},
        ),
        "frame": Rule(words="name attached_to", children="pose"),
        "pose": Rule(words="relative_to frame degrees rotation_format", text="0-7"),
        "link": Rule(
            words="name",
            children="pose inertial collision",
            shown="visual",
            unused_children="sensor projector audio_sink audio_source battery light particle_emitter "
            "self_collide enable_wind must_be_base_link velocity_decay",
            refused_children={"gravity": YES, "kinematic": NO},
        ),
        "inertial": Rule(
            refused={"auto": NO},
            children="mass pose inertia",
            unused_children="density auto_inertia_params",
            refused_children={"fluid_added_mass": NONE},
        ),
        "mass": NUMBER,
        "inertia": Rule(children="ixx ixy ixz iyy iyz izz"),
        **dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), NUMBER),
        "collision": Rule(
            words="name",
            children="pose geometry surface",
            unused_children="laser_retro max_contacts density auto_inertia_params",
        ),
        "geometry": Rule(
            children="box sphere cylinder capsule ellipsoid cone mesh plane polyline heightmap image empty",
            is_closed=True,
        ),
        "box": Rule(children="size"),
        "size": VECTOR,
        "sphere": Rule(children="radius"),
        **dict.fromkeys(("cylinder", "capsule", "cone"), Rule(children="radius length")),
        "ellipsoid": Rule(children="radii"),
        "radius": NUMBER,
        "length": NUMBER,
        "radii": VECTOR,
        "mesh": Rule(
            unused="optimization",
            children="uri scale",
            unused_children="convex_decomposition",
            refused_children={"submesh": NONE},
        ),
        "scale": VECTOR,
        "plane": Rule(unused_children="normal size"),
        "polyline": Rule(unused_children="point height"),
        "heightmap": Rule(unused_children="uri size pos texture blend use_terrain_paging sampling"),
        "image": Rule(unused_children="uri scale threshold height granularity"),
        "surface": Rule(children="friction", unused_children="bounce contact soft_contact"),
        "surface/friction": Rule(children="ode", unused_children="torsional bullet"),
        "friction/ode": Rule(children="mu", unused_children="mu2 fdir1 slip1 slip2"),
        "mu": NUMBER,
        "joint": Rule(
            words="name type",
            children="parent child pose axis",
            unused_children="axis2 sensor physics gearbox_ratio gearbox_reference_body thread_pitch screw_thread_pitch",
        ),
        "axis": Rule(children="xyz limit dynamics mimic use_parent_model_frame", unused_children="initial_position"),
        "xyz": Rule(words="expressed_in", text="3"),
        "limit": Rule(children="lower upper effort velocity", unused_children="stiffness dissipation"),
        **dict.fromkeys(("lower", "upper", "effort", "velocity"), LIMIT),
        "dynamics": Rule(children="damping friction spring_reference spring_stiffness"),
        **dict.fromkeys(("damping", "friction", "spring_reference", "spring_stiffness"), NUMBER),
        "mimic": Rule(words="joint axis", children="multiplier offset reference", is_closed=True),
        **dict.fromkeys(("multiplier", "offset", "reference"), NUMBER),
    },
    once="world pose inertial mass inertia ixx ixy ixz iyy iyz izz geometry surface size radius length radii uri scale "
    "friction ode mu parent child axis xyz limit lower upper effort velocity dynamics damping spring_reference "
    "spring_stiffness mimic multiplier offset reference use_parent_model_frame",
)
