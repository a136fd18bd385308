// Rules made from the layer table in scripts/layers.ts. `make lint` runs them through scripts/check-layers.ts, which
// also proves that every module was read.
import {
  ADAPTERS,
  CLOUD_CODE,
  COMPOSITION,
  FLOORS,
  floorsOf,
  LAYERS,
  OUTSIDE,
  PACKAGES,
  roomPattern,
} from "./scripts/layers.ts";

const PRODUCT = "^(src|machines)/";

const rooms = LAYERS.flatMap((layer, height) =>
  layer.rooms.map((room) => ({
    room,
    layer: layer.name,
    below: LAYERS.slice(0, height).flatMap((lower) => lower.rooms),
  })),
);

const downOnly = rooms.map(({ room, layer, below }) => ({
  name: `layer-${layer}-${room}`,
  comment: `${room} may import only itself and the layers below ${layer}`,
  severity: "error",
  from: { path: roomPattern(room) },
  to: { path: PRODUCT, pathNot: [room, ...below].map(roomPattern) },
}));

const withinRooms = Object.keys(FLOORS).flatMap((outer) =>
  floorsOf(outer).flatMap((floor, height, floors) =>
    floor.map((room) => ({
      name: `room-${room}`,
      comment: `${room} may import of ${outer} only itself and the floors below`,
      severity: "error",
      from: { path: roomPattern(room) },
      to: { path: roomPattern(outer), pathNot: [room, ...floors.slice(0, height).flat()].map(roomPattern) },
    })),
  ),
);

const packages = Object.entries(PACKAGES).map(([room, allowed]) => ({
  name: `packages-${room}`,
  comment: `${room} may import these packages only: ${allowed.join(", ") || "none"}`,
  severity: "error",
  from: { path: roomPattern(room) },
  to: {
    dependencyTypesNot: ["core", "local", "type-only", "localmodule"],
    pathNot: [PRODUCT, ...allowed.map((name) => `^node_modules/${name}/`)],
  },
}));

const adapters = ADAPTERS.flatMap((adapter) => [
  {
    name: `adapter-${adapter}`,
    comment: "an implementation of a port is picked at the top, and only there",
    severity: "error",
    from: { path: PRODUCT, pathNot: [...COMPOSITION.map(roomPattern), `^${adapter}[/.]`] },
    to: { path: `^${adapter}[/.]` },
  },
  {
    name: `adapter-apart-${adapter}`,
    comment: "implementations of a port know nothing of each other",
    severity: "error",
    from: {
      path: `^(${adapter})[/.]`,
    },
    to: { path: `^${adapter}[/.]`, pathNot: "^$1[/.]" },
  },
]);

export default {
  forbidden: [
    ...downOnly,
    ...withinRooms,
    ...packages,
    ...adapters,
    {
      name: "cycle",
      comment: "modules that import each other, types included, cannot be understood one at a time",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "coordinator-reaches-no-cloud",
      severity: "error",
      from: { path: "^src/coordinator/" },
      to: { path: CLOUD_CODE, reachable: true },
    },
    {
      name: "product-imports-no-outside",
      severity: "error",
      from: { path: PRODUCT },
      to: { path: OUTSIDE.map((folder) => `^${folder}/`) },
    },
    {
      name: "product-imports-no-dev-dependency",
      severity: "error",
      from: { path: PRODUCT },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["npm"] },
    },
    {
      name: "unresolved",
      comment: "an import that is not found is an import that is not checked",
      severity: "error",
      from: { pathNot: "^bin/" },
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^dist/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "types", "default"],
    },
  },
};
