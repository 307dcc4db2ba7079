// A tool's JSON Schema, reduced to what the engine's grammar can hold a model to. No I/O.

const DEEPEST = 16;
const SCALARS = ["string", "number", "integer", "boolean", "null"];

/** A tool's schema asks for something that no grammar here can hold. */
export class SchemaError extends Error {}

/**
 * Reduce `schema` to the engine's subset.
 *
 * The engine fills in every property it is shown, so optional ones are left out.
 */
export function grammarSchema(schema, root = schema, depth = 0) {
  if (depth > DEEPEST) throw new SchemaError(`it is nested deeper than ${DEEPEST} levels, or endlessly`);
  const below = (inner) => grammarSchema(inner, root, depth + 1);
  if (typeof schema !== "object" || schema === null) return { type: "string" };
  if (schema.$ref !== undefined) return below(resolve(schema.$ref, root));
  if (schema.const !== undefined) return { enum: scalars([schema.const]) };
  if (schema.enum !== undefined) return { enum: scalars(schema.enum) };
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(alternatives)) return { oneOf: alternatives.map(below) };
  if (schema.type === "object" || schema.properties) return objectSchema(schema, below);
  if (schema.type === "array") {
    const { minItems, maxItems } = schema;
    return { type: "array", items: below(schema.items), minItems, maxItems };
  }
  if (schema.type === "string") {
    const { minLength, maxLength } = schema;
    return { type: "string", minLength, maxLength };
  }
  const types = [schema.type].flat().filter((type) => SCALARS.includes(type));
  return { type: types.length > 0 ? types : "string" };
}

/** Return `parameters` with the values of some of its properties narrowed to lists. */
export function narrow(parameters, values) {
  const properties = { ...parameters.properties };
  for (const [name, allowed] of Object.entries(values)) {
    if (!(name in properties)) throw new SchemaError(`it has no property "${name}" to allow values of`);
    properties[name] = { enum: allowed };
  }
  return { ...parameters, properties };
}

function objectSchema({ properties = {}, required }, below) {
  const names = Object.keys(properties).filter((name) => !required || required.includes(name));
  const kept = names.map((name) => [name, below(properties[name])]);
  return { type: "object", properties: Object.fromEntries(kept) };
}

function scalars(values) {
  if (values.every((value) => value === null || typeof value !== "object")) return values;
  throw new SchemaError("it has an enum or a const of objects or lists; only scalars can be chosen from");
}

function resolve(reference, root) {
  const keys = String(reference).split("/");
  const target = keys.slice(1).reduce((at, key) => at?.[key], root);
  if (keys[0] !== "#" || target === undefined) throw new SchemaError(`"${reference}" points nowhere in it`);
  return target;
}
