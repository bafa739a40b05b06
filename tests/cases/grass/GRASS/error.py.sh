import grass.script as gs

gs.run_command("r.info", map="missing")
print("never")
