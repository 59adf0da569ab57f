/** Types of components for `tsc`, which `npm run dev` runs. `vue-tsc` reads the components themselves. */
declare module "*.vue" {
  import type { Component } from "vue";
  const component: Component;
  export default component;
}
