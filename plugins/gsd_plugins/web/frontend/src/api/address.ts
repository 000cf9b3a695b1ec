/** What can be asked of the server, as docs/reference/openapi.json says: a wrong path, value or body does not compile. */

import type { paths } from "./types";

type Api = { [P in keyof paths as P extends `/api/v1${infer Rest}` ? Rest : never]: paths[P] };
type Method = "get" | "put" | "post" | "delete";
/** The paths that know this method. */
export type PathOf<M extends Method> = { [P in keyof Api]: Api[P] extends Record<M, object> ? P : never }[keyof Api];
type Operation<P extends PathOf<M>, M extends Method> = Api[P] extends Record<M, infer O> ? O : never;
type Given<V> = [NonNullable<V>] extends [never] ? unknown : NonNullable<V>;
/** What stands in the braces of the path, and in the query. */
export type Values<P extends PathOf<M>, M extends Method> =
  Operation<P, M> extends { parameters: { path?: infer V; query?: infer Q } } ? Given<V> & Given<Q> : never;
export type Body<P extends PathOf<M>, M extends Method> =
  Operation<P, M> extends { requestBody: { content: { "application/json": infer B } } } ? B : never;
export type Returned<P extends PathOf<M>, M extends Method> =
  Operation<P, M> extends { responses: infer R }
    ? { [S in keyof R]: S extends 200 | 201 ? (R[S] extends { content: { "application/json": infer T } } ? T : never) : never }[keyof R]
    : never;

declare const returned: unique symbol;
/** The address of what GET returns as *T*. */
export type Address<T> = string & { readonly [returned]: T };
type Rest<V> = Record<never, never> extends V ? [values?: V] : [values: V];

/** The address to read, such as `addressOf("/sessions/{session}/cost", { session, by: "day" })`. */
export function addressOf<P extends PathOf<"get">>(
  path: P,
  ...[values]: Rest<Values<P, "get">>
): Address<Returned<P, "get">> {
  return filled(path, values) as Address<Returned<P, "get">>;
}

/** The path with its values: those without a place in it are the query. */
export function filled(path: string, values: unknown): string {
  const query = new URLSearchParams();
  let address = path;
  for (const [name, value] of Object.entries(values ?? {}) as [string, unknown][]) {
    const place = `{${name}}`;
    if (address.includes(place)) address = address.replace(place, () => encodeURIComponent(String(value)));
    else for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) query.append(name, String(one));
  }
  return query.size ? `${address}?${query}` : address;
}
