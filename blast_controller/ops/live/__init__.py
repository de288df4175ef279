"""The live page's side of the controller: who looks, what is sent to all who do, what operators do by it."""
